/**
 * Compiles and evaluates the CEL expressions of `--authorization-config`: match conditions of authorization webhooks.
 */
import { createEnvironment } from '#cel/environment.ts'
import { BOOL, listOf, mapOf, STRING } from '#cel/type.ts'
import { fromJson } from '#cel/values/json.ts'

import { evaluateOnce } from './activation.ts'
import { type CompiledExpression, compileExpression, exactly, type UnfitExpression } from './compile.ts'
import { declareObject, declareTexts } from './declared-type.ts'

const REQUIREMENTS = listOf(
  declareObject('kubernetes.SelectorRequirement', { key: STRING, operator: STRING, values: listOf(STRING) }),
)
const selector = (name: string): ReturnType<typeof declareObject> =>
  declareObject(name, { rawSelector: STRING, requirements: REQUIREMENTS })

const TEXTS = ['namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'] as const

const REQUEST = declareObject('kubernetes.SubjectAccessReviewSpec', {
  resourceAttributes: declareObject('kubernetes.ResourceAttributes', {
    ...Object.fromEntries(TEXTS.map((name) => [name, STRING])),
    fieldSelector: selector('kubernetes.FieldSelectorAttributes'),
    labelSelector: selector('kubernetes.LabelSelectorAttributes'),
  }),
  nonResourceAttributes: declareTexts('kubernetes.NonResourceAttributes', ['path', 'verb']),
  user: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
  uid: STRING,
})

const environment = createEnvironment({ variables: { request: REQUEST } })
const TRUTH = exactly(BOOL)

export function compileAccessCondition(source: string): CompiledExpression | UnfitExpression {
  return compileExpression(environment, source, TRUTH)
}

/** The spec of a SubjectAccessReview in JSON, version v1. */
export interface AccessSpec {
  readonly user?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
  readonly resourceAttributes?: object
  readonly nonResourceAttributes?: object
}

/** All must be true. One false condition decides, even if others fail; `errors` are from failed ones. */
export function evaluateAccess(
  conditions: readonly CompiledExpression[],
  spec: AccessSpec,
): { readonly matches: boolean; readonly errors: readonly string[] } {
  const request = fromJson(wholeSpec(spec))
  const errors: string[] = []
  for (const condition of conditions) {
    const { value, error } = evaluateOnce(condition, { request })
    if (error !== undefined) {
      errors.push(`cel evaluation error: expression '${condition.source}' resulted in error: ${error}`)
    } else if (value !== true) return { matches: false, errors: [] }
  }
  return { matches: errors.length === 0, errors }
}

/** With all texts, including those that JSON omits if empty. */
function wholeSpec({ user = '', uid = '', groups = [], extra = {}, ...spec }: AccessSpec): object {
  const { resourceAttributes: resource, nonResourceAttributes: path } = spec
  const empty = Object.fromEntries(TEXTS.map((name) => [name, '']))
  return {
    user,
    uid,
    groups,
    extra,
    ...(resource && { resourceAttributes: { ...empty, ...resource } }),
    ...(path && { nonResourceAttributes: { path: '', verb: '', ...path } }),
  }
}
