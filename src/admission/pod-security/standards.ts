/**
 * The Pod Security Standards as a table: each check with its level, the version of its introduction, and the baseline
 * check it replaces. Violations are reported in table order: baseline first, each level by name.
 */
import type { PodSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import * as baseline from './baseline.ts'
import type { LevelVersion } from './policy.ts'
import * as restricted from './restricted.ts'
import type { Check, Violation } from './violation.ts'

interface Standard {
  readonly id: string
  /** By the minor version since which it applies, ascending. */
  readonly since: readonly (readonly [minor: number, check: Check])[]
  /** A baseline check that this one replaces. */
  readonly replaces?: string
}

const RESERVED_PORTS = 'net.ipv4.ip_local_reserved_ports'
const KEEPALIVE = [
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
]
const BUFFERS = ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem']

const BASELINE: readonly Standard[] = [
  { id: 'appArmorProfile', since: [[0, baseline.appArmorProfile]] },
  { id: 'capabilities_baseline', since: [[0, baseline.capabilities]] },
  { id: 'hostNamespaces', since: [[0, baseline.hostNamespaces]] },
  { id: 'hostPathVolumes', since: [[0, baseline.hostPathVolumes]] },
  { id: 'hostPorts', since: [[0, baseline.hostPorts]] },
  { id: 'hostProbesAndHostLifecycle', since: [[34, baseline.hostProbes]] },
  { id: 'privileged', since: [[0, baseline.privileged]] },
  {
    id: 'procMount',
    since: [
      [0, baseline.procMount],
      [35, baseline.unlessUserNamespace(baseline.procMount)],
    ],
  },
  {
    id: 'seLinuxOptions',
    since: [
      [0, baseline.seLinuxOptions()],
      [31, baseline.seLinuxOptions('container_engine_t')],
    ],
  },
  {
    id: 'seccompProfile_baseline',
    since: [
      [0, baseline.seccompAnnotations],
      [19, baseline.seccompProfile],
    ],
  },
  {
    id: 'sysctls',
    since: [
      [0, baseline.sysctls()],
      [27, baseline.sysctls(RESERVED_PORTS)],
      [29, baseline.sysctls(RESERVED_PORTS, ...KEEPALIVE)],
      [32, baseline.sysctls(RESERVED_PORTS, ...KEEPALIVE, ...BUFFERS)],
    ],
  },
  { id: 'windowsHostProcess', since: [[0, baseline.windowsHostProcess]] },
]

const RESTRICTED: readonly Standard[] = [
  {
    id: 'allowPrivilegeEscalation',
    since: [
      [8, restricted.allowPrivilegeEscalation],
      [25, restricted.unlessWindows(restricted.allowPrivilegeEscalation)],
    ],
  },
  {
    id: 'capabilities_restricted',
    since: [
      [22, restricted.capabilities],
      [25, restricted.unlessWindows(restricted.capabilities)],
    ],
    replaces: 'capabilities_baseline',
  },
  { id: 'procMount_restricted', since: [[35, baseline.procMount]], replaces: 'procMount' },
  { id: 'restrictedVolumes', since: [[0, restricted.volumeTypes]], replaces: 'hostPathVolumes' },
  {
    id: 'runAsNonRoot',
    since: [
      [0, restricted.runAsNonRoot],
      [35, baseline.unlessUserNamespace(restricted.runAsNonRoot)],
    ],
  },
  {
    id: 'runAsUser',
    since: [
      [23, restricted.runAsUser],
      [35, baseline.unlessUserNamespace(restricted.runAsUser)],
    ],
  },
  {
    id: 'seccompProfile_restricted',
    since: [
      [19, restricted.seccomp],
      [25, restricted.unlessWindows(restricted.seccomp)],
    ],
    replaces: 'seccompProfile_baseline',
  },
]

/** The last version with a change: all later ones are equal. */
const NEWEST = Math.max(...[...BASELINE, ...RESTRICTED].flatMap(({ since }) => since.map(([minor]) => minor)))

/** For every version, the checks in order. */
const checksBy = {
  baseline: Array.from({ length: NEWEST + 1 }, (_, minor) => checksAt(BASELINE, minor)),
  restricted: Array.from({ length: NEWEST + 1 }, (_, minor) => {
    const replaced = new Set(RESTRICTED.filter((one) => checkAt(one, minor)).map(({ replaces }) => replaces))
    return checksAt([...BASELINE.filter(({ id }) => !replaced.has(id)), ...RESTRICTED], minor)
  }),
} as const

function checkAt({ since }: Standard, minor: number): Check | undefined {
  return since.findLast(([first]) => first <= minor)?.[1]
}

function checksAt(standards: readonly Standard[], minor: number): Check[] {
  return standards.flatMap((standard) => checkAt(standard, minor) ?? [])
}

export type PodTemplate = { readonly metadata: Pick<ObjectMeta, 'annotations'>; readonly spec: PodSpec }

export function violationsOf({ metadata, spec }: PodTemplate, { level, minor }: LevelVersion): Violation[] {
  if (level === 'privileged') return []
  const checks = checksBy[level][Math.min(minor, NEWEST)] ?? []
  return checks.flatMap((check) => check(spec, metadata) ?? [])
}

/** `host namespaces, privileged`. */
export function reasonsText(violations: readonly Violation[]): string {
  return violations.map(({ reason }) => reason).join(', ')
}

/** `host namespaces (hostNetwork=true), privileged (container "a" must not …)`. */
export function detailsText(violations: readonly Violation[]): string {
  return violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ')
}
