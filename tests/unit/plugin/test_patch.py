"""Patches go in and come out without a trace."""

import pytest
from hybridwatch_engine.patch import Patch, PatchSet


class Engine:
    def step(self):
        return "step"

    @classmethod
    def platform(cls):
        return cls.__name__


class Special(Engine):
    """Inherits everything: a patch must not leave a copy of the parent's method behind."""


def louder(original):
    return lambda self: original(self).upper()


def test_original_object_is_back_after_removal():
    before = vars(Engine)["step"]
    patch = Patch(Engine, "step", louder)
    patch.install()
    assert Engine().step() == "STEP"
    patch.install()  # again: not wrapped twice
    patch.remove()
    assert vars(Engine)["step"] is before


def test_inherited_name_is_inherited_again():
    patch = Patch(Special, "step", louder)
    patch.install()
    assert Special().step() == "STEP"
    assert Engine().step() == "step"
    patch.remove()
    assert "step" not in vars(Special)


def test_classmethod_stays_a_classmethod():
    patch = Patch(
        Engine, "platform", lambda original: classmethod(lambda cls: original.__func__(cls) * 2)
    )
    patch.install()
    assert Special.platform() == "SpecialSpecial"
    patch.remove()
    assert Special.platform() == "Special"


def test_renamed_target_fails_when_the_patch_is_made():
    with pytest.raises(AttributeError):
        Patch(Engine, "forward", louder)


def test_wraps_what_is_there_when_installed_not_when_made():
    """A probe made while a fix was reverted must not bring the reverted code back later."""
    outer = Patch(Engine, "step", lambda original: lambda self: f"<{original(self)}>")
    inner = Patch(Engine, "step", louder)
    inner.install()
    outer.install()
    outer.remove()
    inner.remove()
    outer.install()
    assert Engine().step() == "<step>"
    outer.remove()


def test_patches_of_one_name_come_out_in_any_order():
    before = vars(Engine)["step"]
    inner = Patch(Engine, "step", louder)
    outer = Patch(Engine, "step", lambda original: lambda self: f"<{original(self)}>")
    inner.install()
    outer.install()
    inner.remove()
    assert Engine().step() == "<step>"
    inner.install()
    assert Engine().step() == "<STEP>"
    outer.remove()
    assert Engine().step() == "STEP"
    inner.remove()
    assert vars(Engine)["step"] is before


def test_a_name_that_someone_else_has_patched_is_left_alone(monkeypatch):
    patch = Patch(Engine, "step", louder)
    patch.install()
    with monkeypatch.context() as theirs:
        theirs.setattr(Engine, "step", lambda _: "theirs")
        with pytest.raises(RuntimeError, match="patched by other code"):
            patch.remove()
    patch.remove()


def test_set_goes_in_and_out_as_one():
    patches = PatchSet(Patch(Engine, "step", louder), Patch(Special, "step", louder))
    seen = [patches.in_place]
    patches.install()
    seen.append(patches.in_place)
    patches.remove()
    seen.append(patches.in_place)
    assert seen == [False, True, False]
    assert Special().step() == "step"
