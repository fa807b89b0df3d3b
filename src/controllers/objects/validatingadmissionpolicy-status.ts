/**
 * Maintains the status of ValidatingAdmissionPolicies: type-checks their expressions against the matched kinds, once
 * for each generation. The result has no effect on admission.
 */
import {
  type RuleWithOperations,
  ValidatingAdmissionPolicies,
  type ValidatingAdmissionPolicy,
} from '#apis/admissionregistration/v1.ts'
import type { CelType } from '#cel/type.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { ServedKind } from '#client/discovery.ts'
import { compareText } from '#lib/go/text.ts'
import { parseJson } from '#lib/json/json.ts'
import { type GroupVersion, type GroupVersionKind, kindKey, parseApiVersion } from '#meta/kind.ts'
import { isNotFound } from '#meta/status.ts'
import { type OpenApiSchemas, typeOfKind } from '#model/expressions/openapi-type.ts'
import { typeCheckPolicy } from '#model/expressions/type-check.ts'
import { EVENTS, itself, rule } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, defineController } from '../controller.ts'
import { ServedKinds } from './served-kinds.ts'

/** The field manager. */
const MANAGER = 'validatingadmissionpolicy-status'
const MAX_KINDS = 10
const MAX_BYTES = 64 << 20

const kindsOf = perRun(({ client }) => new ServedKinds(client))

export const validatingAdmissionPolicyStatusController: Controller = defineController({
  name: 'validatingadmissionpolicy-status-controller',
  watches: [itself(ValidatingAdmissionPolicies)],
  rules: [
    rule('admissionregistration.k8s.io', 'validatingadmissionpolicies', 'get list watch'),
    rule('admissionregistration.k8s.io', 'validatingadmissionpolicies/status', 'get patch update'),
    EVENTS,
  ],

  async reconcile(name, context) {
    const { cache, client, signal } = context
    const policy = cache.get(ValidatingAdmissionPolicies, name)
    const { generation = 0 } = policy?.metadata ?? {}
    if (policy === undefined || generation <= (policy.status.observedGeneration ?? 0)) return
    const kinds = await kindsOf(context).find((served) => checkedKinds(policy, served))
    const types = new Types(client, signal)
    const known = await Promise.all(kinds.map(async (kind) => ({ kind, type: await types.of(kind) })))
    const checked = known.flatMap(({ kind, type }) => (type === undefined ? [] : [{ kind, type }]))
    const { paramKind } = policy.spec
    const params = paramKind && { ...parseApiVersion(paramKind.apiVersion ?? ''), kind: paramKind.kind ?? '' }
    const warnings = typeCheckPolicy(policy.spec, checked, params && (await types.of(params)))
    const typeChecking = warnings.length === 0 ? {} : { expressionWarnings: warnings }
    const status = { observedGeneration: generation, typeChecking }
    const options = { fieldManager: MANAGER, force: true, subresource: 'status', signal }
    await client.apply(ValidatingAdmissionPolicies, { metadata: { name }, status }, options)
  },
})

/** The kinds that a policy matches, by group, version and kind. Rules with wildcards are skipped. */
export function checkedKinds({ spec }: ValidatingAdmissionPolicy, served: readonly ServedKind[]): GroupVersionKind[] {
  const found = new Map<string, GroupVersionKind>()
  for (const one of spec.matchConstraints?.resourceRules ?? []) {
    for (const kind of kindsOfRule(one, served)) found.set(kindKey(kind), kind)
    if (found.size >= MAX_KINDS) break
  }
  return [...found.values()].sort(
    (a, b) => compareText(a.group, b.group) || compareText(a.version, b.version) || compareText(a.kind, b.kind),
  )
}

/** The first ten of a rule, in the order of group, version and resource. */
function kindsOfRule(
  { apiGroups = [], apiVersions = [], resources = [] }: RuleWithOperations,
  served: readonly ServedKind[],
): GroupVersionKind[] {
  if ([...apiGroups, ...apiVersions].some((text) => text.includes('*'))) return []
  const plain = resources.filter((resource) => !/[*/]/.test(resource)).sort(compareText)
  const kinds = [...apiGroups]
    .sort(compareText)
    .flatMap((group) =>
      [...apiVersions]
        .sort(compareText)
        .flatMap((version) =>
          plain.flatMap((resource) =>
            served.filter(
              (one) => one.group === group && one.version === version && [one.plural, one.singular].includes(resource),
            ),
          ),
        ),
    )
  return kinds.slice(0, MAX_KINDS).map(({ group, version, kind }) => ({ group, version, kind }))
}

/** Types of kinds from OpenAPI documents; each is read once. */
class Types {
  readonly #client: ApiClient
  readonly #signal: AbortSignal
  readonly #documents = new Map<string, Promise<OpenApiSchemas>>()

  constructor(client: ApiClient, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
  }

  async of(kind: GroupVersionKind): Promise<CelType | undefined> {
    const path = pathOf(kind)
    const document = this.#documents.get(path) ?? this.#read(path)
    this.#documents.set(path, document)
    return typeOfKind(kind, await document)
  }

  async #read(path: string): Promise<OpenApiSchemas> {
    try {
      const response = await this.#client.ask({ method: 'GET', path, signal: this.#signal })
      const document = parseJson(await response.bytes(MAX_BYTES)) as { components?: { schemas?: OpenApiSchemas } }
      return document.components?.schemas ?? {}
    } catch (error) {
      if (isNotFound(error)) return {}
      throw error
    }
  }
}

function pathOf({ group, version }: GroupVersion): string {
  return group === '' ? `/openapi/v3/api/${version}` : `/openapi/v3/apis/${group}/${version}`
}
