/** `hyperkube up` as a process of its own, with its console. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'

export const HYPERKUBE: string = join(import.meta.dirname, '..', '..', '..', 'bin', 'hyperkube')

/** Of this test file. It is removed at the end. */
export const dir: string = mkdtempSync(join(tmpdir(), 'hyperkube-console-'))
export const dataDir: string = join(dir, 'data')
export const env: NodeJS.ProcessEnv = { ...process.env, HOME: dir }
const running = new Set<ChildProcess>()
after(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

export interface Started {
  readonly child: ChildProcess
  readonly output: () => string
  /** The first line that matches. */
  line(pattern: RegExp): Promise<string>
  stop(signal: NodeJS.Signals): Promise<void>
}

/** `hyperkube` with arguments. */
export function start(...args: string[]): Started {
  const child = spawn(HYPERKUBE, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  running.add(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (text += piece.toString()))
  const ended = once(child, 'close').then(() => void running.delete(child))
  const find = (pattern: RegExp): string | undefined => text.split('\n').find((line) => pattern.test(line))
  return {
    child,
    output: () => text,
    async line(pattern) {
      const found = await eventually(
        () => find(pattern) ?? (child.exitCode === null ? undefined : `It has ended: ${text}`),
        (line) => line !== undefined,
      )
      assert.match(found ?? '', pattern)
      return found ?? ''
    },
    async stop(signal) {
      child.kill(signal)
      await ended
    },
  }
}

/** A cluster of one process without nodes. */
export const up = (...args: string[]): Started =>
  start(
    'up',
    '--runtime=simulated',
    '--nodes=0',
    '--secure-port=0',
    `--data-dir=${dataDir}`,
    `--kubeconfig=${dir}/config`,
    ...args,
  )

/** The link in a line of output. */
export function linkIn(line: string): { readonly link: string; readonly port: number } {
  const link = /http:\/\/127\.0\.0\.1:\d+\/ui\/login\?code=[\w-]{43}/.exec(line)?.[0] ?? ''
  return { link, port: Number(new URL(link).port) }
}
