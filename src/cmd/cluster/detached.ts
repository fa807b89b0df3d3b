/** `up --detach`: runs the same command in a background process that outlives this one. */
import { spawn } from 'node:child_process'
import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Invocation } from '#lib/program.ts'
import { ProgramError } from '#lib/program.ts'

import { readConsoleLink } from '../console/console-files.ts'
import { OWN_PROGRAM } from '../program-path.ts'
import { type ClusterFile, comesTrue, readClusterFile, removeClusterFile } from './cluster-file.ts'
import { alreadyRunning, clusterOwner } from './cluster-lock.ts'

export interface Ready extends ClusterFile {
  readonly dataDir: string
  readonly readyMs: number
  /** The log-in link of the web console; undefined: there is none. */
  readonly consoleUrl: string | undefined
}

/** Much longer than a start with a large store takes. */
const START_MS = 120_000
const LOG_LINES = 20

/** Returns when the cluster is ready. Throws ProgramError with the last log lines if it fails. */
export async function startDetached(
  { args, cwd, env, clock }: Pick<Invocation<never>, 'args' | 'cwd' | 'env' | 'clock'>,
  dataDir: string,
  announce: (ready: Ready) => void,
): Promise<number> {
  const owner = await clusterOwner(dataDir)
  if (owner !== undefined) throw new ProgramError(alreadyRunning(dataDir, owner, env))
  // A killed cluster leaves the file behind, and the new process may reuse its pid.
  await removeClusterFile(dataDir)
  const startedMs = clock.elapsed()
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const logFile = join(dataDir, 'up.log')
  const log = await open(logFile, 'w', 0o600)
  const rest = args.filter((arg) => !/^--detach(?:=|$)/.test(arg))
  const child = spawn(OWN_PROGRAM, ['up', ...rest], { cwd, env, detached: true, stdio: ['ignore', log.fd, log.fd] })
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
    const lastLines = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-LOG_LINES).join('\n')
    throw new ProgramError(`The cluster has not started; ${logFile} says:\n${lastLines.replace(/^Error: /m, '')}`)
  }
  const consoleUrl = await readConsoleLink(dataDir)
  announce({ ...ready, dataDir, consoleUrl, readyMs: Math.round(clock.elapsed() - startedMs) })
  return 0
}
