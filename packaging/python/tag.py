"""Gives the wheel the tag of the program in it."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["tag"] = os.environ["SMBSCOPE_WHEEL_TAG"]
        build_data["pure_python"] = False
