/**
 * Runs recorded CEL cases about validation rules of custom resources: errors of definitions and objects, warnings and
 * costs. Prints each difference from upstream and exits with 1 if there is one.
 *
 *     node test/upstream/cel-rules.ts [--cases FILE] [group or id …]
 */
import { readFileSync } from 'node:fs'

import type { JSONSchemaProps } from '#apis/apiextensions/v1.ts'
import { schemaFor } from '#apis/schemas.ts'
import type { RuleContext, WriteContext } from '#apiserver/registry/resource.ts'
import { parseJson, stringifyJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { runAtOnce } from '#lib/time-slicing.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import type { FieldError } from '#meta/validation/field-path.ts'
import { RULES_BUDGET, runRules } from '#model/custom/rule-run.ts'
import { structuralOf } from '#model/custom/structural.ts'
import { customResourceDefinition } from '#resources/apiextensions/customresourcedefinition/resource.ts'

import { casesFromArguments } from './cel-cases.ts'

interface RuleCase {
  readonly id: string
  readonly kind: 'expr' | 'rule'
  readonly group: string
  readonly rule: unknown
  readonly schema: JSONSchemaProps
  readonly self: JsonObject
  readonly oldSelf?: JsonObject
  readonly result: RuleResult & { readonly varies?: readonly string[] }
}

interface RuleResult {
  readonly crdErrors?: readonly object[]
  /** Absent where upstream could not even evaluate. */
  readonly errors?: readonly object[]
  readonly warnings?: readonly string[]
  readonly actualCost?: number
  readonly budgetExceeded?: boolean
}

/** Our result in the form of the recorded one. */
function resultOf({ schema, self, oldSelf }: RuleCase): RuleResult {
  const crdErrors = definitionErrors(schema)
  const { errors, warnings, budgetLeft } = runRules(self, structuralOf(schema), { old: oldSelf })
  return {
    crdErrors: crdErrors.map(shown).sort((a, b) => (a.field < b.field ? -1 : a.field > b.field ? 1 : 0)),
    errors: errors.map(shown),
    ...(warnings.length > 0 && { warnings }),
    ...(budgetLeft < 0 ? { budgetExceeded: true } : { actualCost: RULES_BUDGET - budgetLeft }),
  }
}

function shown(error: FieldError): { field: string; type: string; detail: string; text: string } {
  const { field, type, detail } = error
  return { field, type, detail, text: fieldErrorText(error) }
}

function definitionErrors(openAPIV3Schema: JSONSchemaProps): FieldError[] {
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'tests.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'tests', kind: 'Test' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
  const struct = schemaFor(customResourceDefinition.kind)
  if (struct === undefined) throw new Error('There is no schema of definitions')
  const object = decodeValue(struct, structuredClone(definition), 'Ignore', { offences: [] })
  const { applyDefaults, prepareCreate, validateInSteps } = customResourceDefinition
  if (validateInSteps === undefined) throw new Error('CustomResourceDefinitions are no longer validated in steps')
  applyDefaults?.(object as never, {} as RuleContext)
  prepareCreate?.(object as never, {} as WriteContext)
  return runAtOnce(validateInSteps(object as never, undefined, {} as RuleContext))
}

const FIELDS = ['crdErrors', 'errors', 'warnings', 'actualCost', 'budgetExceeded'] as const

function differences(test: RuleCase): readonly string[] {
  const ours = resultOf(test)
  const { varies = [], errors } = test.result
  return FIELDS.filter((field) => !varies.includes(field) && (errors !== undefined || field === 'crdErrors'))
    .map((field) => [field, canonical(ours[field]), canonical(test.result[field])] as const)
    .filter(([, mine, theirs]) => mine !== theirs)
    .map(([field, mine, theirs]) => `${field}\n    ours     ${mine}\n    upstream ${theirs}`)
}

function canonical(value: unknown): string {
  return value === undefined ? '' : stringifyJson(sorted(value))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function main(): boolean {
  const { path, wanted } = casesFromArguments()
  const cases = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => parseJson(line) as unknown as RuleCase)
    .filter(({ kind }) => kind === 'rule')
    .filter(({ group, id }) => wanted.length === 0 || wanted.includes(group) || wanted.includes(id))
  let same = 0
  for (const test of cases) {
    const found = differences(test)
    if (found.length === 0) same++
    for (const difference of found) process.stdout.write(`${test.id} ${JSON.stringify(test.rule)}\n  ${difference}\n`)
  }
  process.stdout.write(`${same} of ${cases.length} cases have upstream's result\n`)
  return same === cases.length && same > 0
}

process.exitCode = main() ? 0 : 1
