/**
 * Runs the bootstrap script on the machine for a stream of the cluster builder, as SSH would. The script is built in;
 * only its parameters come from the stream.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Duplex, Readable, Writable } from 'node:stream'

import { BOOTSTRAP } from '../ssh/bootstrap.ts'

type Script = ChildProcessByStdio<Writable, Readable, Readable>

const WORDS = 4096

/** The script ends when the stream does. If it fails, the stream ends with its last words as the error. */
export function serveBuilder(stream: Duplex, env: Readonly<Record<string, string | undefined>>): void {
  const script: Script = spawn('sh', ['-c', BOOTSTRAP.asRoot], { stdio: ['pipe', 'pipe', 'pipe'], env, cwd: '/' })
  let words = ''
  script.stderr.setEncoding('utf8').on('data', (chunk: string) => (words = (words + chunk).slice(-WORDS)))
  script.once('error', (error) => stream.destroy(error))
  script.once('close', (code) => {
    if (code === 0) stream.end()
    else stream.destroy(new Error(words.trim() || `the program ended with code ${code ?? 'none'}`))
  })
  script.stdin.on('error', () => undefined)
  script.stdout.on('error', () => undefined)
  stream.on('close', () => {
    script.stdin.end()
    script.stdout.destroy()
  })
  stream.pipe(script.stdin)
  script.stdout.pipe(stream, { end: false })
}
