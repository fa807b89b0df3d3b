/** Metrics of pod security: evaluations, errors and exemptions. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { LevelVersion } from './policy.ts'

export interface PodSecurityMeter {
  exempted(attributes: Attributes): void
  /** `isFatal`: the request was refused because of it. */
  failed(attributes: Attributes, isFatal: boolean): void
  evaluated(attributes: Attributes, evaluation: Evaluation): void
}

export interface Evaluation {
  readonly mode: 'enforce' | 'audit' | 'warn'
  readonly policy: LevelVersion
  readonly decision: 'allow' | 'deny'
}

/** The minor release of the latest standards here. */
const LATEST_MINOR = 36

export function createPodSecurityMeter(meters: ServerMeters): PodSecurityMeter {
  const evaluations = meters.family('pod_security_evaluations_total')
  const exemptions = meters.family('pod_security_exemptions_total')
  const errors = meters.family('pod_security_errors_total')
  // Shown from the start, as upstream.
  for (const operation of ['create', 'update']) {
    evaluations.labels('allow', 'privileged', 'latest', 'enforce', operation, 'pod', '')
    for (const resource of ['pod', 'controller']) exemptions.labels(operation, resource, '')
  }
  return {
    exempted: (attributes) => exemptions.labels(...placeOf(attributes)).inc(),
    failed: (attributes, isFatal) => errors.labels(String(isFatal), ...placeOf(attributes)).inc(),
    evaluated(attributes, { mode, policy, decision }) {
      evaluations.labels(decision, policy.level, versionLabel(policy), mode, ...placeOf(attributes)).inc()
    },
  }
}

const KINDS: ReadonlyMap<string, string> = new Map([
  ['pods', 'pod'],
  ['namespaces', 'namespace'],
])

function placeOf({ operation, kind, subresource }: Attributes): readonly [string, string, string] {
  return [operation.toLowerCase(), KINDS.get(kind.plural) ?? 'controller', subresource]
}

/** The privileged level is the same in every version. */
function versionLabel({ level, minor }: LevelVersion): string {
  if (level === 'privileged' || minor === Infinity) return 'latest'
  return minor <= LATEST_MINOR ? `v1.${minor}` : 'future'
}
