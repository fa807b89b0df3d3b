/** Compares two folders, which have one file for each object, with an external program. */
import { spawn } from 'node:child_process'

import { goQuote } from '#lib/go/text.ts'

import type { Info } from '../builder/select-options.ts'
import type { Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import type { AnyObject } from '../session/rest.ts'

/** `apps.v1.Deployment.default.web`. */
export function fileName({ group, version, kind }: Info['kind'], { metadata }: AnyObject): string {
  const start = group === '' ? '' : `${group}.`
  const { namespace = '', name = '' } = metadata
  // Few kinds allow slashes in names, and names must never lead outside of the folder.
  return `${start}${version}.${kind}.${namespace}.${name}`.replaceAll('/', '_')
}

/** Upstream's exit code after a signal. */
const KILLED = 255

/** The exit code of the program: 0 or 1. Throws KubectlError for any other. */
export async function compare(
  { env, stdout, stderr }: Pick<Invocation, 'env' | 'stdout' | 'stderr'>,
  from: string,
  to: string,
): Promise<number> {
  const [program = '', ...options] = (env['KUBECTL_EXTERNAL_DIFF'] ?? '').split(' ')
  const isOwn = program === ''
  const extra = options.filter((option) => /^[a-zA-Z0-9-=]+$/.test(option))
  const args = isOwn ? ['-u', '-N', from, to] : [from, to, ...extra]
  const name = isOwn ? 'diff' : program
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new KubectlError(`failed to run ${goQuote(name)}: ${why}`))
    const child = spawn(name, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env } })
    child.stdout.on('data', (chunk: Buffer) => stdout.write(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.write(chunk))
    child.once('error', () => fail('executable file not found in $PATH'))
    child.once('close', (code) => {
      if (code === 0 || code === 1) resolve(code)
      else if (code === null) resolve(KILLED)
      else fail(`exit status ${code}`)
    })
  })
}
