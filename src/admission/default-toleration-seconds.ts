/**
 * DefaultTolerationSeconds: adds tolerations with a time limit for not-ready and unreachable nodes to pods that do not
 * set their own.
 */
import type { Pod, Toleration } from '#apis/core/v1.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface DefaultTolerationSecondsOptions {
  /** `--default-not-ready-toleration-seconds`. */
  readonly notReadySeconds?: number
  /** `--default-unreachable-toleration-seconds`. */
  readonly unreachableSeconds?: number
}

/** Long enough for a node to restart, short enough that its pods are not missed for long. */
const DEFAULT_SECONDS = 300

export function createDefaultTolerationSeconds(options: DefaultTolerationSecondsOptions = {}): AdmissionPlugin {
  const { notReadySeconds = DEFAULT_SECONDS, unreachableSeconds = DEFAULT_SECONDS } = options
  const taints = [
    ['node.kubernetes.io/not-ready', notReadySeconds],
    ['node.kubernetes.io/unreachable', unreachableSeconds],
  ] as const
  return defineAdmission({
    name: 'DefaultTolerationSeconds',
    on: ['CREATE', 'UPDATE'],
    resources: ['pods'],

    mutate({ object }) {
      const { spec } = object as Pod
      const given = spec.tolerations ?? []
      const added: Toleration[] = taints
        .filter(([key]) => !given.some((toleration) => speaksOf(toleration, key)))
        .map(([key, tolerationSeconds]) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }))
      if (added.length > 0) spec.tolerations = [...given, ...added]
    },
  })
}

function speaksOf({ key = '', effect = '' }: Toleration, taint: string): boolean {
  return (key === '' || key === taint) && (effect === '' || effect === 'NoExecute')
}
