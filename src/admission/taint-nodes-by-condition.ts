/**
 * TaintNodesByCondition: adds the not-ready taint to new nodes, until the node lifecycle controller has seen them
 * ready.
 */
import type { Node } from '#apis/core/v1.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }

export const taintNodesByCondition: AdmissionPlugin = defineAdmission({
  name: 'TaintNodesByCondition',
  on: ['CREATE'],
  resources: ['nodes'],

  mutate({ object }) {
    const node = object as Node
    const taints = node.spec?.taints ?? []
    if (taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect)) return
    node.spec = { ...node.spec, taints: [...taints, { ...NOT_READY }] }
  },
})
