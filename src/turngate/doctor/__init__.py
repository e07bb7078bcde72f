"""Diagnosis: will each hook run, will each gate hold, and what is there to do if not?"""
