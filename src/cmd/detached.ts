/** `up --detach`: the same command again, as a process of its own that outlives this one. */
import { spawn } from 'node:child_process'
import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { Invocation } from '#lib/program.ts'
import { ProgramError } from '#lib/program.ts'

import { type ClusterFile, comesTrue, readClusterFile, removeClusterFile } from './cluster-file.ts'
import { alreadyRunning, clusterOwner } from './cluster-lock.ts'

export interface Ready extends ClusterFile {
  readonly dataDir: string
  readonly readyMs: number
}

/** Much more than a start takes, with a large store. */
const START_MS = 120_000
const LOG_LINES = 20

/** Returns when the cluster is ready. Throws ProgramError with what it said when it does not come up. */
export async function startDetached(
  { args, cwd, env, clock }: Pick<Invocation<never>, 'args' | 'cwd' | 'env' | 'clock'>,
  dataDir: string,
  announce: (ready: Ready) => void,
): Promise<number> {
  const owner = await clusterOwner(dataDir)
  if (owner !== undefined) throw new ProgramError(alreadyRunning(dataDir, owner))
  // One that was killed has left it; the new process may get the number of the old one.
  await removeClusterFile(dataDir)
  const startedMs = clock.elapsed()
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const logFile = join(dataDir, 'up.log')
  const log = await open(logFile, 'w', 0o600)
  const rest = args.filter((arg) => !/^--detach(?:=|$)/.test(arg))
  const program = fileURLToPath(new URL('../../bin/hyperkube', import.meta.url))
  const child = spawn(program, ['up', ...rest], { cwd, env, detached: true, stdio: ['ignore', log.fd, log.fd] })
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null
  child.on('error', () => undefined)
  let ready: ClusterFile | undefined
  const isReady = async (): Promise<boolean> => {
    ready = await readClusterFile(dataDir)
    return isOver() || ready?.pid === child.pid
  }
  await comesTrue(clock, START_MS, isReady)
  await log.close()
  child.unref()
  if (ready === undefined || ready.pid !== child.pid) {
    const said = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-LOG_LINES).join('\n')
    throw new ProgramError(`The cluster has not come up; ${logFile} says:\n${said.replace(/^Error: /m, '')}`)
  }
  announce({ ...ready, dataDir, readyMs: Math.round(clock.elapsed() - startedMs) })
  return 0
}
