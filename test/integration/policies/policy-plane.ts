/** Starts a control plane for tests, with functions that create admission policies and bindings. */
import assert from 'node:assert/strict'

import {
  type ControlPlane,
  type ControlPlaneOptions,
  type ControlPlaneResponse,
  startControlPlane,
} from '#testing/control-plane.ts'

export type Json = Record<string, unknown>

export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
export const GROUP = '/apis/admissionregistration.k8s.io/v1'

const PLURALS = {
  validating: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  mutating: ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'],
} as const

export type PolicyKind = keyof typeof PLURALS

/** The match rules of a policy; default: creations and updates of ConfigMaps. */
export function about(resources: string | readonly string[] = 'configmaps', more: Json = {}): Json {
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], ...more }
  return { resourceRules: [{ ...rule, resources: [resources].flat() }] }
}

export class PolicyPlane {
  readonly plane: ControlPlane
  #count = 0

  constructor(plane: ControlPlane) {
    this.plane = plane
  }

  static async start(options: ControlPlaneOptions = {}): Promise<PolicyPlane> {
    return new PolicyPlane(await startControlPlane(options))
  }

  request(...args: Parameters<ControlPlane['request']>): Promise<ControlPlaneResponse> {
    return this.plane.request(...args)
  }

  /** Sends a request that must succeed. */
  async did(...args: Parameters<ControlPlane['request']>): Promise<Json> {
    const answer = await this.plane.request(...args)
    assert.ok(answer.status < 300, `${args[0]} ${args[1]}: ${answer.status} ${answer.text}`)
    return answer.json()
  }

  policy(kind: PolicyKind, name: string, spec: Json): Promise<ControlPlaneResponse> {
    const more = kind === 'mutating' ? { reinvocationPolicy: 'Never' } : {}
    const body = { metadata: { name }, spec: { matchConstraints: about(), ...more, ...spec } }
    return this.request('POST', `${GROUP}/${PLURALS[kind][0]}`, body)
  }

  binding(kind: PolicyKind, name: string, policyName: string, spec: Json = {}): Promise<ControlPlaneResponse> {
    const more = kind === 'validating' ? { validationActions: ['Deny'] } : {}
    const body = { metadata: { name }, spec: { policyName, ...more, ...spec } }
    return this.request('POST', `${GROUP}/${PLURALS[kind][1]}`, body)
  }

  /** A policy `p1` with a binding `b1`. */
  async use(kind: PolicyKind, spec: Json, binding: Json = {}): Promise<void> {
    const answers = [await this.policy(kind, 'p1', spec), await this.binding(kind, 'b1', 'p1', binding)]
    for (const { status, text } of answers) assert.equal(status, 201, text)
  }

  /** Refuses ConfigMaps whose data do not meet the expression. */
  validate(expression: string, more: Json = {}, binding: Json = {}): Promise<void> {
    const { validation, ...spec } = more
    return this.use('validating', { validations: [{ expression, ...(validation as object) }], ...spec }, binding)
  }

  /** Takes all policies, bindings and ConfigMaps away. */
  async reset(): Promise<void> {
    for (const plural of Object.values(PLURALS).flat()) await this.did('DELETE', `${GROUP}/${plural}`)
    await this.did('DELETE', CONFIG_MAPS)
  }

  /** Under a new name unless it has one. */
  create(data: Json = { a: '1' }, metadata: Json = {}, query = ''): Promise<ControlPlaneResponse> {
    const name = `c${this.#count++}`
    return this.request('POST', CONFIG_MAPS + query, { metadata: { name, ...metadata }, data })
  }

  stop(): Promise<void> {
    return this.plane.stop()
  }
}
