/** Describes the progress of a rollout, with upstream's messages. */
import type { DaemonSet, Deployment, StatefulSet } from '#apis/apps/v1.ts'
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'

export interface RolloutStatus {
  readonly text: string
  readonly isDone: boolean
}

const REVISION = 'deployment.kubernetes.io/revision'

function waiting(text: string): RolloutStatus {
  return { text: `${text}...\n`, isDone: false }
}

function done(text: string): RolloutStatus {
  return { text: `${text}\n`, isDone: true }
}

/**
 * `revision`: the expected active revision; 0 accepts any. Throws KubectlError if the rollout can no longer succeed.
 */
export function deploymentStatus({ metadata, spec, status }: Deployment, revision: number): RolloutStatus {
  const name = goQuote(metadata.name ?? '')
  const running = Number(metadata.annotations?.[REVISION] ?? 0)
  if (revision > 0 && revision !== running) {
    throw new KubectlError(`desired revision (${revision}) is different from the running revision (${running})`)
  }
  if ((metadata.generation ?? 0) > (status.observedGeneration ?? 0)) {
    return waiting('Waiting for deployment spec update to be observed')
  }
  const progressing = status.conditions?.find(({ type }) => type === 'Progressing')
  if (progressing?.reason === 'ProgressDeadlineExceeded') {
    throw new KubectlError(`deployment ${name} exceeded its progress deadline`)
  }
  return replicasStatus(name, { spec, status })
}

function replicasStatus(name: string, { spec, status }: Pick<Deployment, 'spec' | 'status'>): RolloutStatus {
  const { updatedReplicas: updated = 0, replicas: total = 0, availableReplicas: available = 0 } = status
  const rest = `Waiting for deployment ${name} rollout to finish:`
  const { replicas: desired } = spec
  if (desired !== undefined && updated < desired) {
    return waiting(`${rest} ${updated} out of ${desired} new replicas have been updated`)
  }
  if (total > updated) return waiting(`${rest} ${total - updated} old replicas are pending termination`)
  if (available < updated) return waiting(`${rest} ${available} of ${updated} updated replicas are available`)
  return done(`deployment ${name} successfully rolled out`)
}

const ROLLING_ONLY = 'rollout status is only available for RollingUpdate strategy type'

export function daemonSetStatus({ metadata, spec, status }: DaemonSet): RolloutStatus {
  if (spec.updateStrategy?.type !== 'RollingUpdate') throw new KubectlError(ROLLING_ONLY)
  if ((metadata.generation ?? 0) > (status.observedGeneration ?? 0)) {
    return waiting('Waiting for daemon set spec update to be observed')
  }
  const name = goQuote(metadata.name ?? '')
  const {
    updatedNumberScheduled: updated = 0,
    numberAvailable: available = 0,
    desiredNumberScheduled: desired,
  } = status
  const rest = `Waiting for daemon set ${name} rollout to finish:`
  if (updated < desired) return waiting(`${rest} ${updated} out of ${desired} new pods have been updated`)
  if (available < desired) return waiting(`${rest} ${available} of ${desired} updated pods are available`)
  return done(`daemon set ${name} successfully rolled out`)
}

export function statefulSetStatus({ metadata, spec, status }: StatefulSet): RolloutStatus {
  if (spec.updateStrategy?.type !== 'RollingUpdate') throw new KubectlError(ROLLING_ONLY)
  const { observedGeneration: observed = 0, readyReplicas: ready = 0, updatedReplicas: updated = 0 } = status
  if (observed === 0 || (metadata.generation ?? 0) > observed) {
    return waiting('Waiting for statefulset spec update to be observed')
  }
  const { replicas } = spec
  if (replicas !== undefined && ready < replicas) return waiting(`Waiting for ${replicas - ready} pods to be ready`)
  const { rollingUpdate } = spec.updateStrategy
  if (rollingUpdate !== undefined) return partitionStatus(rollingUpdate.partition, replicas, updated)
  if (status.updateRevision !== status.currentRevision) {
    return waiting(
      `waiting for statefulset rolling update to complete ${updated} pods at revision ${status.updateRevision}`,
    )
  }
  const { currentReplicas = 0, currentRevision = '' } = status
  return done(`statefulset rolling update complete ${currentReplicas} pods at revision ${currentRevision}...`)
}

function partitionStatus(partition: number | undefined, replicas: number | undefined, updated: number): RolloutStatus {
  const wanted = (replicas ?? 0) - (partition ?? 0)
  if (replicas !== undefined && partition !== undefined && updated < wanted) {
    return waiting(`Waiting for partitioned roll out to finish: ${updated} out of ${wanted} new pods have been updated`)
  }
  return done(`partitioned roll out complete: ${updated} new pods have been updated...`)
}
