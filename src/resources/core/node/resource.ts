/**
 * The Node resource: a machine that runs pods. Its kubelet writes most fields, including the status at registration.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { cidrWarnings } from '#model/addresses.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'

import { nodeColumns } from './columns.ts'
import { validateNode, validateNodeUpdate } from './validation.ts'

export const node: Resource<Node> = defineResource<Node>({
  kind: Nodes,
  metadataRules: { update: ['whole', 'change'] },
  storagePrefix: 'minions',
  statusOnCreate: 'kept',
  applyDefaults(object) {
    const { spec, status } = object
    if (spec !== undefined) alignPodCidrs(spec)
    if (status?.capacity !== undefined) status.allocatable ??= { ...status.capacity }
    roundAmounts(status?.capacity)
    roundAmounts(status?.allocatable)
  },
  prepareCreate(object, context) {
    delete object.spec?.configSource
    delete object.status?.config
    dropDisabledFields(object, undefined, context)
  },
  prepareUpdate(next, old, context) {
    if (old.spec?.configSource === undefined) delete next.spec?.configSource
    dropDisabledFields(next, old, context)
  },
  validate: validateNode,
  validateUpdate: (next, old, context) => [...validateNode(next, context), ...validateNodeUpdate(next, old)],
  warnings: nodeWarnings,
  status: {
    // A status update includes labels and annotations, because kubelets send them so.
    keeps: ['spec'],
    prepareUpdate(next, old) {
      if (old.status?.config === undefined) delete next.status?.config
    },
    validateUpdate: (next, old) => validateNodeUpdate(next, old),
  },
  fieldSelectors: { 'spec.unschedulable': ({ spec }) => String(spec?.unschedulable === true) },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: nodeColumns,
})

/** podCIDR and podCIDRs must agree; if they differ, an old client wrote podCIDR. */
function alignPodCidrs(spec: Node['spec']): void {
  const { podCIDR = '', podCIDRs = [] } = spec
  if (podCIDR !== '' && podCIDR !== podCIDRs[0]) spec.podCIDRs = [podCIDR]
  const first = spec.podCIDRs?.[0]
  if (first !== undefined) spec.podCIDR = first
}

function dropDisabledFields({ status }: Node, old: Node | undefined, { isEnabled }: RuleContext): void {
  if (!isEnabled('NodeDeclaredFeatures') && old?.status?.declaredFeatures === undefined) delete status?.declaredFeatures
}

function nodeWarnings({ spec }: Node): string[] {
  const { configSource, externalID = '', podCIDRs = [] } = spec ?? {}
  return [
    ...(configSource === undefined ? [] : ['spec.configSource: the feature is removed']),
    ...(externalID === '' ? [] : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
    ...podCIDRs.flatMap((cidr, at) => cidrWarnings(fieldPath('spec.podCIDRs').index(at), cidr)),
  ]
}
