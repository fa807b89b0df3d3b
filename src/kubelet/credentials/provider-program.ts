/** Runs a credential provider plugin: one request on stdin, one response on stdout. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import type { Clock } from '#lib/clock.ts'

import type { CredentialProviderOptions, CredentialResponse } from './credential-provider.ts'
import type { ProviderConfig } from './provider-config.ts'

export interface ProgramOptions {
  readonly config: ProviderConfig
  readonly binDir: string
  readonly clock: Clock
  /** The environment of the plugin, in addition to its configuration. */
  readonly env: Readonly<Record<string, string | undefined>>
}

const TIMEOUT_MS = 60_000

export function providerProgram({ config, binDir, clock, env }: ProgramOptions): CredentialProviderOptions['run'] {
  const { name, apiVersion, args = [] } = config
  const own = Object.fromEntries((config.env ?? []).map((one) => [one.name, one.value]))
  return async (request) => {
    const failed = `error execing credential provider plugin ${name} for image ${request.image}`
    const child = spawn(join(binDir, name), [...args], { env: { ...env, ...own }, stdio: 'pipe' })
    let isLate = false
    const timer = clock.after(TIMEOUT_MS, () => {
      isLate = true
      child.kill('SIGKILL')
    })
    const ended = new Promise<string | undefined>((resolve, reject) => {
      child.on('error', (cause) => reject(new Error(`${failed}: ${cause.message}: `, { cause })))
      child.on('close', (code, signal) => resolve(faultOf(code, signal)))
    })
    // A plugin that ignores its input closes stdin; its exit status is reported instead.
    child.stdin.on('error', () => undefined)
    child.stdin.end(JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion, ...request }))
    try {
      const [fault, output, complaint] = await clock.during(
        Promise.all([ended, text(child.stdout), text(child.stderr)]),
      )
      if (isLate) throw new Error(`${failed}: context deadline exceeded: ${complaint}`)
      if (fault !== undefined) throw new Error(`${failed}: ${fault}: ${complaint}`)
      return readResponse(output, apiVersion)
    } finally {
      timer.cancel()
    }
  }
}

function faultOf(code: number | null, signal: string | null): string | undefined {
  if (code === 0) return undefined
  return code === null ? `signal: ${signal}` : `exit status ${code}`
}

/** Throws upstream's errors. Pure. */
export function readResponse(output: string, apiVersion: string): CredentialResponse {
  const parsed = parse(output)
  const actual = parsed.apiVersion ?? ''
  if (actual !== apiVersion) {
    throw new Error(
      `apiVersion from credential plugin response did not match expected apiVersion:${apiVersion}, actual apiVersion:${actual}`,
    )
  }
  if (parsed.kind !== 'CredentialProviderResponse') {
    throw new Error('error decoding credential provider plugin response from stdout')
  }
  return { ...parsed, cacheKeyType: parsed.cacheKeyType ?? '' }
}

interface ProviderResponse extends Partial<CredentialResponse> {
  readonly kind?: string
  readonly apiVersion?: string
}

function parse(output: string): ProviderResponse {
  try {
    const value = JSON.parse(output) as unknown
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // The error below omits the output, which may contain a secret.
  }
  throw new Error("error reading GVK from response: couldn't get version/kind; json parse error")
}
