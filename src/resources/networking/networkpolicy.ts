/** The NetworkPolicy resource: declares the allowed traffic of selected pods. */
import { isDeepStrictEqual } from 'node:util'

import {
  type IPBlock,
  NetworkPolicies,
  type NetworkPolicy,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  type NetworkPolicySpec,
} from '#apis/networking/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { type Cidr, cidrOf, parseCidr } from '#lib/net/cidr.ts'
import { labelSelectorText, type LabelSelectorTolerance, validateLabelSelector } from '#meta/label-selector.ts'
import { validateLegacyCidr } from '#meta/validation/addresses.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { portName, portNumber } from '#meta/validation/names.ts'
import { oneOf } from '#meta/validation/rules.ts'
import { cidrWarnings } from '#model/addresses.ts'

interface Options extends LabelSelectorTolerance {
  readonly strict: boolean
  /** Invalid blocks of the old object, which are accepted at any index. */
  readonly old: readonly string[]
}

export const networkPolicy: Resource<NetworkPolicy> = defineResource<NetworkPolicy>({
  kind: NetworkPolicies,
  // An empty selector matches everything, an absent one nothing.
  generation: (next, old) => !isDeepStrictEqual(next.spec, old.spec),
  applyDefaults({ spec }) {
    for (const { ports } of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
      for (const port of ports ?? []) port.protocol ??= 'TCP'
    }
    if ((spec.policyTypes ?? []).length === 0) {
      spec.policyTypes = (spec.egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress']
    }
  },
  validate: ({ spec }, context) => validateSpec(spec, { ...strictness(context), old: [] }),
  validateUpdate: (next, old, context) =>
    validateSpec(next.spec, {
      ...strictness(context),
      invalidValues: validateLabelSelector(fieldPath(''), old.spec.podSelector).length > 0,
      old: peersOf(old.spec).flatMap(({ peer: { ipBlock } }) =>
        ipBlock === undefined ? [] : [ipBlock.cidr, ...(ipBlock.except ?? [])],
      ),
    }),
  warnings: ({ spec }) =>
    peersOf(spec).flatMap(({ path, peer: { ipBlock } }) =>
      ipBlock === undefined ? [] : blockWarnings(path.child('ipBlock'), ipBlock),
    ),
  columns: [nameColumn, { name: 'Pod-Selector', value: ({ spec }) => labelSelectorText(spec.podSelector) }, ageColumn],
})

function strictness({ isEnabled }: RuleContext): { strict: boolean } {
  return { strict: isEnabled('StrictIPCIDRValidation') }
}

interface Rule {
  readonly path: FieldPath
  readonly ports: readonly NetworkPolicyPort[]
  readonly peers: readonly { readonly path: FieldPath; readonly peer: NetworkPolicyPeer }[]
}

/** The rules of both directions, which differ only in the field of peers. */
function rulesOf({ ingress = [], egress = [] }: NetworkPolicySpec): Rule[] {
  const rule = (
    path: FieldPath,
    side: string,
    ports: readonly NetworkPolicyPort[] = [],
    peers: readonly NetworkPolicyPeer[] = [],
  ): Rule => ({
    path,
    ports,
    peers: peers.map((peer, at) => ({ path: path.child(side).index(at), peer })),
  })
  return [
    ...ingress.map(({ ports, from }, at) => rule(fieldPath('spec.ingress').index(at), 'from', ports, from)),
    ...egress.map(({ ports, to }, at) => rule(fieldPath('spec.egress').index(at), 'to', ports, to)),
  ]
}

function peersOf(spec: NetworkPolicySpec): Rule['peers'] {
  return rulesOf(spec).flatMap(({ peers }) => peers)
}

const policyTypes = ['Ingress', 'Egress']

function validateSpec(spec: NetworkPolicySpec, options: Options): FieldError[] {
  const types = spec.policyTypes ?? []
  const errors = [
    ...validateLabelSelector(fieldPath('spec.podSelector'), spec.podSelector, options),
    ...rulesOf(spec).flatMap(({ path, ports, peers }) => [
      ...path.child('ports').each(ports, validatePort),
      ...peers.flatMap((one) => validatePeer(one.path, one.peer, options)),
    ]),
  ]
  if (types.length > policyTypes.length) {
    return [...errors, fieldPath('spec.policyTypes').invalid(types, 'may not specify more than two policyTypes')]
  }
  const unknown = fieldPath('spec.policyTypes').each(types, (path, type) => oneOf(path, type, policyTypes))
  return [...errors, ...unknown]
}

function validatePort(path: FieldPath, { protocol, port, endPort }: NetworkPolicyPort): FieldError[] {
  const end = path.child('endPort')
  const misplaced = (why: string): FieldError[] =>
    endPort === undefined ? [] : [end.invalid(endPort, `may not be specified when \`port\` is ${why}`)]
  const errors = oneOf(path.child('protocol'), protocol, ['TCP', 'UDP', 'SCTP'])
  if (port === undefined) return [...errors, ...misplaced('not specified')]
  if (typeof port === 'string') {
    return [...errors, ...misplaced('non-numeric'), ...path.child('port').check(port, portName)]
  }
  errors.push(...path.child('port').check(port, portNumber))
  if (endPort === undefined) return errors
  if (endPort < port) errors.push(end.invalid(port, 'must be greater than or equal to `port`'))
  return [...errors, ...end.check(endPort, portNumber)]
}

function validatePeer(path: FieldPath, peer: NetworkPolicyPeer, options: Options): FieldError[] {
  const { podSelector, namespaceSelector, ipBlock } = peer
  const selects = podSelector !== undefined || namespaceSelector !== undefined
  return collectErrors(
    validateLabelSelector(path.child('podSelector'), podSelector, options),
    validateLabelSelector(path.child('namespaceSelector'), namespaceSelector, options),
    ipBlock !== undefined && validateBlock(path.child('ipBlock'), ipBlock, options),
    ipBlock === undefined && !selects && path.required('must specify a peer'),
    ipBlock !== undefined && selects && path.forbidden('may not specify both ipBlock and another peer'),
  )
}

function validateBlock(path: FieldPath, { cidr, except = [] }: IPBlock, options: Options): FieldError[] {
  const field = path.child('cidr')
  if (cidr === '') return [field.required()]
  const errors = validateLegacyCidr(field, cidr, options)
  const whole = parseCidr(cidr, { sloppy: true })
  if (whole === undefined) return errors
  return [
    ...errors,
    ...path.child('except').each(except, (exceptPath, text) => {
      const part = parseCidr(text, { sloppy: true })
      const within = part === undefined || isStrictlyWithin(part, whole)
      return collectErrors(
        validateLegacyCidr(exceptPath, text, options),
        !within && exceptPath.invalid(text, 'must be a strict subset of `cidr`'),
      )
    }),
  ]
}

function isStrictlyWithin(part: Cidr, whole: Cidr): boolean {
  if (part.family !== whole.family || part.prefixLength <= whole.prefixLength) return false
  return cidrOf({ family: part.family, value: part.base }, whole.prefixLength).base === whole.base
}

function blockWarnings(path: FieldPath, { cidr, except = [] }: IPBlock): string[] {
  return [
    ...cidrWarnings(path.child('cidr'), cidr),
    ...except.flatMap((text, at) => cidrWarnings(path.child('except').index(at), text)),
  ]
}
