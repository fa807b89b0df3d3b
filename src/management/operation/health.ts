/** Serves `/livez`, `/readyz` and `/healthz` in upstream's format: `?verbose` lists each check and its result. */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'

import type { Reply, Route } from '../port/route.ts'

export interface ServerCheck {
  readonly name: string
  /** `livez`: a failure means that the process must be restarted. */
  readonly on: readonly HealthPath[]
  /** Throws the reason, which goes to the log only: the page is public. */
  readonly check: () => void | Promise<void>
}

type HealthPath = 'livez' | 'readyz' | 'healthz'

export interface HealthOptions {
  readonly clock: Clock
  readonly checks: readonly ServerCheck[]
  /** Called when a check fails that did not fail before, and when one passes again. */
  readonly onChange: (name: string, problem: string | undefined) => void
}

const CHECK_MS = 5000
const PATHS: readonly HealthPath[] = ['livez', 'readyz', 'healthz']

export function healthRoutes({ clock, checks, onChange }: HealthOptions): readonly Route[] {
  const problems = new Map<string, string>()
  const run = async (one: ServerCheck): Promise<boolean> => {
    const problem = await problemOf(one, clock)
    if ((problem === undefined) !== (problems.get(one.name) === undefined)) onChange(one.name, problem)
    if (problem === undefined) problems.delete(one.name)
    else problems.set(one.name, problem)
    return problem === undefined
  }
  return PATHS.map((path) => ({
    method: 'GET',
    path: `/${path}`,
    access: 'anyone',
    serve: ({ query }) => answer(path, { query, checks: checks.filter(({ on }) => on.includes(path)), run }),
  }))
}

interface Page {
  readonly query: URLSearchParams
  readonly checks: readonly ServerCheck[]
  readonly run: (check: ServerCheck) => Promise<boolean>
}

async function answer(path: HealthPath, { query, checks, run }: Page): Promise<Reply> {
  const excluded = new Set(query.getAll('exclude'))
  const results = await Promise.all(
    checks.map(async (check) => {
      const { name } = check
      if (excluded.has(name)) return { name, isWell: true, line: `[+]${name} excluded: ok` }
      const isWell = await run(check)
      return { name, isWell, line: isWell ? `[+]${name} ok` : `[-]${name} failed: reason withheld` }
    }),
  )
  const lines = results.map(({ line }) => line)
  const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name)).sort()
  if (unknown.length > 0)
    lines.push(`warn: some health checks cannot be excluded: no matches for ${unknown.map(goQuote).join(',')}`)
  const isWell = results.every((result) => result.isWell)
  if (!isWell) return { status: 500, body: `${lines.join('\n')}\n${path} check failed\n` }
  return { status: 200, body: query.has('verbose') ? `${lines.join('\n')}\n${path} check passed\n` : 'ok' }
}

async function problemOf({ check }: ServerCheck, clock: Clock): Promise<string | undefined> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = (): void => reject(new Error(`no answer within ${CHECK_MS / 1000} s`))
  const timer = clock.after(CHECK_MS, late, { background: true })
  try {
    await Promise.race([check(), promise])
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    timer.cancel()
  }
}
