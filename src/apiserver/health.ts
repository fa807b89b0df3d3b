/** /healthz, /livez, /readyz: whether the server lives and may be sent requests, check by check. */
import type { Answer, Call } from './call.ts'

export interface HealthCheck {
  readonly name: string
  /** Which of the three ask it. A server that drains is alive and not ready. */
  readonly on: readonly HealthPath[]
  /** Throws what is wrong; the text is for people with access, others only see that it failed. */
  check(): void | Promise<void>
}

type HealthPath = 'healthz' | 'livez' | 'readyz'

const PATHS: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz'])

/** Answers the three paths and one path below them for each check; undefined for all others. */
export function createHealth(checks: () => readonly HealthCheck[]): (call: Call) => Promise<Answer> | undefined {
  return (call) => {
    const [path = '', name, ...rest] = call.info.path.slice(1).split('/')
    if (!PATHS.has(path) || rest.length > 0) return undefined
    const asked = checks().filter((check) => check.on.includes(path as HealthPath))
    if (name === undefined) return answerAll(call, path, asked)
    const one = asked.find((check) => check.name === name)
    return one === undefined ? undefined : answerOne(one)
  }
}

async function answerAll(call: Call, path: string, checks: readonly HealthCheck[]): Promise<Answer> {
  const excluded = new Set(call.query.getAll('exclude'))
  const lines: string[] = []
  let failed = 0
  for (const check of checks) {
    const outcome = excluded.has(check.name) ? 'excluded' : await run(check)
    if (outcome === 'failed') failed++
    lines.push(
      outcome === 'excluded'
        ? `[+]${check.name} excluded: ok`
        : outcome === 'ok'
          ? `[+]${check.name} ok`
          : `[-]${check.name} failed: reason withheld`,
    )
  }
  const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name))
  if (unknown.length > 0)
    lines.push(
      `warn: some health checks cannot be excluded: no matches for ${unknown.map((name) => JSON.stringify(name)).join(',')}`,
    )
  if (failed > 0) return text(500, `${lines.join('\n')}\n${path} check failed\n`)
  return call.query.has('verbose') ? text(200, `${lines.join('\n')}\n${path} check passed\n`) : text(200, 'ok')
}

async function answerOne(check: HealthCheck): Promise<Answer> {
  return (await run(check)) === 'ok' ? text(200, 'ok') : text(500, 'internal server error: reason withheld\n')
}

async function run(check: HealthCheck): Promise<'ok' | 'failed'> {
  try {
    await check.check()
    return 'ok'
  } catch {
    return 'failed'
  }
}

function text(status: number, body: string): Answer {
  return { status, contentType: 'text/plain; charset=utf-8', body, headers: { 'X-Content-Type-Options': 'nosniff' } }
}
