/** Serves /debug: changes the log level at run time. It has no profiles. */
import { parseGoInt } from '#lib/go/text.ts'

import type { Answer, Call } from '../requests/call.ts'

export interface DebugOptions {
  /** `--profiling`. */
  readonly isProfiled: boolean
  /** Absent: the log level is fixed. */
  readonly setVerbosity?: (level: number) => void
}

/** Undefined for other paths, and for all paths without `--profiling`. */
export function createDebugPages({
  isProfiled,
  setVerbosity,
}: DebugOptions): (call: Call) => Promise<Answer> | Answer | undefined {
  return (call) => {
    const { path } = call.info
    if (!isProfiled) return undefined
    if (path === '/debug/pprof' || path.startsWith('/debug/pprof/')) return NO_PROFILES
    return path === '/debug/flags/v' && setVerbosity !== undefined ? changeVerbosity(call, setVerbosity) : undefined
  }
}

const NO_PROFILES = plain(
  501,
  'This server has no Go profiles; start it with NODE_OPTIONS=--inspect or --cpu-prof and look at it with the tools of Node',
)

async function changeVerbosity(call: Call, setVerbosity: (level: number) => void): Promise<Answer> {
  if (call.method !== 'PUT') return plain(406, 'unsupported http method')
  const text = (await call.body()).toString()
  try {
    if (text.startsWith('-')) throw new Error(`strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`)
    setVerbosity(parseGoInt(text, 'ParseUint', 32))
  } catch (error) {
    return plain(400, (error as Error).message)
  }
  return plain(200, `successfully set klog.logging.verbosity to ${text}`)
}

function plain(status: number, body: string): Answer {
  return { status, contentType: 'text/plain', body, headers: { 'X-Content-Type-Options': 'nosniff' } }
}
