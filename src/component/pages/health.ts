/** Serves /healthz, /livez and /readyz, with the result of each health check. */
import { goQuote } from '#lib/go/text.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { Answer, Call } from '../requests/call.ts'

export interface HealthCheck {
  /** May contain slashes. */
  readonly name: string
  /** The paths that include it. A draining server is live and not ready. */
  readonly on: readonly HealthPath[]
  /** Throws the error. Only authorized users see its text. */
  check(): void | Promise<void>
}

export type HealthPath = 'healthz' | 'livez' | 'readyz'

const PATH = /^\/(?<path>healthz|livez|readyz)(?:\/(?<name>.+))?$/

/** Answers the three paths and one path below them for each check; undefined for all others. Counts results. */
export function createHealth(
  checks: readonly HealthCheck[],
  meters: ServerMeters,
): (call: Call) => Promise<Answer> | undefined {
  const current = meters.family('kubernetes_healthcheck')
  const total = meters.family('kubernetes_healthchecks_total')
  const observe = (name: string, path: string, isWell: boolean): void => {
    current.labels(name, path).set(isWell ? 1 : 0)
    total.labels(name, path, isWell ? 'success' : 'error').inc()
  }
  return (call) => {
    const { path, name } = PATH.exec(call.info.path)?.groups ?? {}
    if (path === undefined) return undefined
    const included = checks.filter((check) => check.on.includes(path as HealthPath))
    if (name === undefined) return answerAll(call, path, included, observe)
    const one = included.find((check) => check.name === name)
    return one === undefined ? undefined : answerOne(one)
  }
}

async function answerAll(
  { query }: Call,
  path: string,
  checks: readonly HealthCheck[],
  observe: (name: string, path: string, isWell: boolean) => void,
): Promise<Answer> {
  const excluded = new Set(query.getAll('exclude'))
  const lines: string[] = []
  let hasFailed = false
  for (const check of checks) {
    const { name } = check
    if (excluded.delete(name)) {
      lines.push(`[+]${name} excluded: ok`)
      continue
    }
    const isWell = (await problemOf(check)) === undefined
    observe(name, path, isWell)
    lines.push(isWell ? `[+]${name} ok` : `[-]${name} failed: reason withheld`)
    hasFailed ||= !isWell
  }
  if (excluded.size > 0) {
    const unknown = [...excluded].sort().map(goQuote).join(',')
    lines.push(`warn: some health checks cannot be excluded: no matches for ${unknown}`)
  }
  if (hasFailed) return text(500, `${lines.join('\n')}\n${path} check failed\n`)
  return query.has('verbose') ? text(200, `${lines.join('\n')}\n${path} check passed\n`) : text(200, 'ok')
}

/** The response for a single check contains the reason of its failure. */
async function answerOne(check: HealthCheck): Promise<Answer> {
  const problem = await problemOf(check)
  return problem === undefined ? text(200, 'ok') : text(500, `internal server error: ${problem}\n`)
}

async function problemOf(check: HealthCheck): Promise<string | undefined> {
  try {
    await check.check()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function text(status: number, body: string): Answer {
  return { status, contentType: 'text/plain; charset=utf-8', body, headers: { 'X-Content-Type-Options': 'nosniff' } }
}
