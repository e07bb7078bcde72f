import os

from turngate import Problem, Rule, Settings, load_settings

os.makedirs(".turngate", exist_ok=True)
with open(".turngate/settings.json", "w") as file:
    file.write('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "timout": 5}]}]}}')

settings: Settings = load_settings(".")
rule: Rule = settings.rules[0]
print(rule.event, rule.hook.kind, rule.source, rule.file)
problem: Problem = settings.problems[0]
print(problem.severity, problem.field, problem.hint)
