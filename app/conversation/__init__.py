"""The frozen vocabulary: values that every room speaks. Standard library only."""
