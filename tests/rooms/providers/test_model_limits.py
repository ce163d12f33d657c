"""Limits of models that no table names."""

from app.conversation.model_profile import TABLE, resolve
from app.errors import ProviderFailure
from app.providers.model_limits import ModelLimits


class Endpoint:
    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def retrieve_model(self, model):
        self.asked.append(model)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def limits(provider) -> ModelLimits:
    return ModelLimits(lambda model: resolve(model, TABLE), provider, 5)


async def test_an_unknown_models_limits_are_asked_for_once():
    endpoint = Endpoint((64_000, 8_000))
    models = limits(endpoint)
    assert not models.profile("new-model").known
    await models.learn("new-model")
    await models.learn("new-model")
    profile = models.profile("new-model")
    assert (profile.known, profile.max_input_tokens, profile.max_output_tokens) == (True, 64_000, 8_000)
    assert endpoint.asked == ["new-model"]


async def test_a_model_of_the_table_is_never_asked_for():
    endpoint = Endpoint()
    await limits(endpoint).learn("claude-sonnet-4-6-20260101")
    assert endpoint.asked == []


async def test_what_nobody_tells_stays_unknown_and_a_failure_is_asked_again():
    endpoint = Endpoint(ProviderFailure("provider_error", "down", transient=True), None)
    models = limits(endpoint)
    for _ in range(3):
        await models.learn("new-model")
        assert not models.profile("new-model").known
    assert endpoint.asked == ["new-model", "new-model"]


async def test_a_provider_without_the_endpoint_has_nothing_to_tell():
    models = limits(object())
    await models.learn("new-model")
    assert not models.profile("new-model").known
