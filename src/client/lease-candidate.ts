/**
 * The LeaseCandidate of a program in coordinated leader election. It exists while the program runs. As in client-go, it
 * is renewed every five minutes and when the API server pings it.
 */
import { type LeaseCandidate, LeaseCandidates } from '#apis/coordination/v1beta1.ts'
import type { Random } from '#lib/random.ts'
import { type Requeue, WorkQueue } from '#lib/work-queue.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, microTimeOf } from '#meta/time.ts'

import type { ApiClient } from './api-client.ts'
import { Informer } from './informer.ts'

export interface LeaseCandidateOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly namespace: string
  /** The candidate's identity in the lease. */
  readonly name: string
  readonly leaseName: string
  /** Semantic versions: `1.36.4`. */
  readonly binaryVersion: string
  readonly emulationVersion: string
  readonly onError: (error: unknown) => void
}

const RENEW: Requeue = { requeueAfterMs: 5 * 60_000 }

/** Creates and renews the candidate until the signal is aborted. Never throws. */
export async function keepLeaseCandidate(options: LeaseCandidateOptions, signal: AbortSignal): Promise<void> {
  const { client, random, namespace, name, onError } = options
  const selection = { namespace, fieldSelector: `metadata.name=${name}` }
  const informer = new Informer({ client, random, kind: LeaseCandidates, selection, onError })
  const queue = new WorkQueue<string>({ clock: client.clock })
  informer.listen({
    updated: (candidate) => isPinged(candidate) && queue.add(name),
    deleted: () => queue.add(name),
  })
  queue.add(name)
  const following = informer.run(signal)
  await queue.run({ workers: 1, signal, handle: () => renew(options, signal), onError })
  await following
}

function isPinged({ spec: { pingTime, renewTime } }: LeaseCandidate): boolean {
  return pingTime !== undefined && (renewTime === undefined || epochMsOf(pingTime) > epochMsOf(renewTime))
}

async function renew(options: LeaseCandidateOptions, signal: AbortSignal): Promise<Requeue> {
  const { client, namespace, name } = options
  const renewTime = microTimeOf(client.clock.now())
  try {
    const current = await client.get(LeaseCandidates, { namespace, name }, { signal })
    await client.update(LeaseCandidates, { ...current, spec: { ...current.spec, renewTime } }, { signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
    const { leaseName, binaryVersion, emulationVersion } = options
    const spec = { leaseName, binaryVersion, emulationVersion, strategy: 'OldestEmulationVersion', renewTime }
    await client.create(LeaseCandidates, { metadata: { namespace, name }, spec }, { signal })
  }
  return RENEW
}
