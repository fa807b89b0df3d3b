/** NetworkPolicy: which traffic the pods it selects may have. */
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
import { type Cidr, cidrOf, parseCidr } from '#lib/cidr.ts'
import { labelSelectorText, type LabelSelectorTolerance, validateLabelSelector } from '#meta/label-selector.ts'
import { validateLegacyCidr } from '#meta/validation/addresses.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { portName, portNumber } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { cidrWarnings } from '#model/addresses.ts'
import { oneOf } from '#model/pod-spec/checks.ts'

interface Options extends LabelSelectorTolerance {
  readonly strict: boolean
  /** Blocks that the old object had: they are let pass wherever they stand now. */
  readonly old: readonly string[]
}

export const networkPolicy: Resource<NetworkPolicy> = defineResource<NetworkPolicy>({
  kind: NetworkPolicies,
  // An empty selector is everything, an absent one is nothing.
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
      invalidValues: validateLabelSelector('', old.spec.podSelector).length > 0,
      old: peersOf(old.spec).flatMap(({ peer: { ipBlock } }) =>
        ipBlock === undefined ? [] : [ipBlock.cidr, ...(ipBlock.except ?? [])],
      ),
    }),
  warnings: ({ spec }) =>
    peersOf(spec).flatMap(({ path, peer: { ipBlock } }) =>
      ipBlock === undefined ? [] : blockWarnings(child(path, 'ipBlock'), ipBlock),
    ),
  columns: [nameColumn, { name: 'Pod-Selector', value: ({ spec }) => labelSelectorText(spec.podSelector) }, ageColumn],
})

function strictness({ isEnabled }: RuleContext): { strict: boolean } {
  return { strict: isEnabled('StrictIPCIDRValidation') }
}

interface Rule {
  readonly path: string
  readonly ports: readonly NetworkPolicyPort[]
  readonly peers: readonly { readonly path: string; readonly peer: NetworkPolicyPeer }[]
}

/** Rules of both directions, which differ only in what they call the other side. */
function rulesOf({ ingress = [], egress = [] }: NetworkPolicySpec): Rule[] {
  const rule = (
    path: string,
    side: string,
    ports: readonly NetworkPolicyPort[] = [],
    peers: readonly NetworkPolicyPeer[] = [],
  ): Rule => ({
    path,
    ports,
    peers: peers.map((peer, at) => ({ path: index(child(path, side), at), peer })),
  })
  return [
    ...ingress.map(({ ports, from }, at) => rule(index('spec.ingress', at), 'from', ports, from)),
    ...egress.map(({ ports, to }, at) => rule(index('spec.egress', at), 'to', ports, to)),
  ]
}

function peersOf(spec: NetworkPolicySpec): Rule['peers'] {
  return rulesOf(spec).flatMap(({ peers }) => peers)
}

const policyTypes = ['Ingress', 'Egress']

function validateSpec(spec: NetworkPolicySpec, options: Options): FieldError[] {
  const types = spec.policyTypes ?? []
  const errors = [
    ...validateLabelSelector('spec.podSelector', spec.podSelector, options),
    ...rulesOf(spec).flatMap(({ path, ports, peers }) => [
      ...ports.flatMap((port, at) => validatePort(index(child(path, 'ports'), at), port)),
      ...peers.flatMap((one) => validatePeer(one.path, one.peer, options)),
    ]),
  ]
  if (types.length > policyTypes.length) {
    return [...errors, invalid('spec.policyTypes', types, 'may not specify more than two policyTypes')]
  }
  const unknown = types.flatMap((type, at) =>
    policyTypes.includes(type) ? [] : [notSupported(index('spec.policyTypes', at), asJson(type), policyTypes)],
  )
  return [...errors, ...unknown]
}

function validatePort(path: string, { protocol, port, endPort }: NetworkPolicyPort): FieldError[] {
  const end = child(path, 'endPort')
  const misplaced = (why: string): FieldError[] =>
    endPort === undefined ? [] : [invalid(end, endPort, `may not be specified when \`port\` is ${why}`)]
  const errors = oneOf(child(path, 'protocol'), protocol, ['TCP', 'UDP', 'SCTP'])
  if (port === undefined) return [...errors, ...misplaced('not specified')]
  if (typeof port === 'string') {
    return [...errors, ...misplaced('non-numeric'), ...complaining(child(path, 'port'), port, portName(port))]
  }
  errors.push(...complaining(child(path, 'port'), port, portNumber(port)))
  if (endPort === undefined) return errors
  if (endPort < port) errors.push(invalid(end, port, 'must be greater than or equal to `port`'))
  return [...errors, ...complaining(end, endPort, portNumber(endPort))]
}

function validatePeer(path: string, peer: NetworkPolicyPeer, options: Options): FieldError[] {
  const { podSelector, namespaceSelector, ipBlock } = peer
  const selects = podSelector !== undefined || namespaceSelector !== undefined
  const errors = [
    ...validateLabelSelector(child(path, 'podSelector'), podSelector, options),
    ...validateLabelSelector(child(path, 'namespaceSelector'), namespaceSelector, options),
    ...(ipBlock === undefined ? [] : validateBlock(child(path, 'ipBlock'), ipBlock, options)),
  ]
  if (ipBlock === undefined && !selects) errors.push(required(path, 'must specify a peer'))
  if (ipBlock !== undefined && selects) {
    errors.push(forbidden(path, 'may not specify both ipBlock and another peer'))
  }
  return errors
}

function validateBlock(path: string, { cidr, except = [] }: IPBlock, options: Options): FieldError[] {
  const field = child(path, 'cidr')
  if (cidr === '') return [required(field)]
  const errors = validateLegacyCidr(field, cidr, options)
  const whole = parseCidr(cidr, { sloppy: true })
  if (whole === undefined) return errors
  return [
    ...errors,
    ...except.flatMap((text, at) => {
      const place = index(child(path, 'except'), at)
      const part = parseCidr(text, { sloppy: true })
      const within = part === undefined || isStrictlyWithin(part, whole)
      return [
        ...validateLegacyCidr(place, text, options),
        ...(within ? [] : [invalid(place, text, 'must be a strict subset of `cidr`')]),
      ]
    }),
  ]
}

function isStrictlyWithin(part: Cidr, whole: Cidr): boolean {
  if (part.family !== whole.family || part.prefixLength <= whole.prefixLength) return false
  return cidrOf({ family: part.family, value: part.base }, whole.prefixLength).base === whole.base
}

function blockWarnings(path: string, { cidr, except = [] }: IPBlock): string[] {
  return [
    ...cidrWarnings(child(path, 'cidr'), cidr),
    ...except.flatMap((text, at) => cidrWarnings(index(child(path, 'except'), at), text)),
  ]
}
