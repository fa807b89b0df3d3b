/** The health checks of the management server: datastore, leader, replica and disk. */
import { statfs } from 'node:fs/promises'

import type { Backend } from '#storage/backend.ts'

import type { Replicas } from '../replicas/replicas.ts'
import type { ServerCheck } from './health.ts'

export interface ChecksOptions {
  /** False while the server starts or stops. */
  readonly isReady: () => boolean
  readonly backend: Pick<Backend, 'health'>
  readonly replicas: Pick<Replicas, 'leadership' | 'isCurrent'>
  /** The disk of this directory has state and the audit log. */
  readonly dataDir: string
}

/** With less, users cannot log in, and the audit log loses lines. */
const MIN_FREE_BYTES = 16 << 20

export function serverChecks({ isReady, backend, replicas, dataDir }: ChecksOptions): readonly ServerCheck[] {
  return [
    { name: 'ping', on: ['livez', 'readyz', 'healthz'], check: () => undefined },
    {
      name: 'started',
      on: ['readyz', 'healthz'],
      check: () => refuseUnless(isReady(), 'the server is starting or stopping'),
    },
    {
      name: 'datastore',
      on: ['readyz', 'healthz'],
      async check() {
        const { ok, message } = await backend.health(undefined, { withoutSizes: true })
        refuseUnless(ok, message)
      },
    },
    {
      name: 'replica-lease',
      on: ['readyz', 'healthz'],
      check: () => refuseUnless(replicas.isCurrent(), 'the lease of this replica has not been renewed'),
    },
    {
      name: 'controllers-leader',
      on: ['readyz'],
      check() {
        const { leads, leader } = replicas.leadership
        refuseUnless(leads || leader !== undefined, 'no replica leads')
      },
    },
    { name: 'disk', on: ['readyz'], check: () => checkDisk(dataDir) },
  ]
}

async function checkDisk(folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  refuseUnless(free >= MIN_FREE_BYTES, `only ${free >> 20} MiB are free on the disk of "${folder}"`)
}

function refuseUnless(isWell: boolean, problem: string): void {
  if (!isWell) throw new Error(problem)
}
