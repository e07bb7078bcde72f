"""`turngate doctor --prove`: does each gate block?"""
