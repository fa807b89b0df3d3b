/** Reads the kuberc file at the start. It loads large modules only if the file exists. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

import type { ProgramContext } from '#lib/program.ts'

import { asError, ExitError, KubectlError } from '../errors.ts'
import type { Preference } from '../session/preference.ts'
import { explicitKuberc, hasKuberc, type KubercLocation, kubercLocation } from './location.ts'

type LoadingContext = Pick<ProgramContext, 'args' | 'env' | 'cwd' | 'stderr' | 'clock'>

/** Undefined without preferences. Throws ExitError. */
export async function loadPreference(context: LoadingContext): Promise<Preference | undefined> {
  if (context.args.length === 0 || !hasKuberc(context.env)) return undefined
  return explained(async () => {
    const explicit = explicitKuberc(context.args)
    const decoded = await loadFile(context, explicit).catch((error: unknown) => {
      throw new KubectlError(`kuberc error ${asError(error).message}`, { cause: error })
    })
    if (decoded !== undefined) (await import('../session/preference.ts')).validatePreference(decoded)
    return decoded
  })
}

/** Adds the kuberc file to the text of an error. */
export async function explained<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    if (!(error instanceof KubectlError)) throw error
    throw new ExitError(1, `error occurred while applying preferences ${error.message}`)
  })
}

async function loadFile(context: LoadingContext, explicit: string): Promise<Preference | undefined> {
  const location = kubercLocation(explicit, context.env)
  if (location === undefined) return undefined
  const text = textAt(resolve(context.cwd, location.file))
  if (text instanceof Error && text.code === 'ENOENT' && !location.isExplicit) return undefined
  return decode(context, location, text)
}

const LOGGED_LEVEL = 5

/** Finds `-v` in a line whose command is not known yet. */
export function verbosityIn(args: readonly string[]): number {
  for (const [at, arg] of args.entries()) {
    if (arg === '--') break
    if (arg === '-v' || arg === '--v') return Number(args[at + 1] ?? 0)
    if (/^--?v=/.test(arg)) return Number(arg.split('=')[1])
  }
  return 0
}

/** Synchronous, because the promise API takes two milliseconds to load at every start. */
function textAt(file: string): string | NodeJS.ErrnoException {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}

async function decode(
  { stderr, clock, args }: LoadingContext,
  { file, isExplicit }: KubercLocation,
  text: string | NodeJS.ErrnoException,
): Promise<Preference | undefined> {
  const { decodePreference } = await import('../session/preference.ts')
  try {
    if (text instanceof Error) throw new KubectlError((await import('../printing.ts')).goFileError(file, text))
    const { logLine } = await import('../klog.ts')
    const isLogged = verbosityIn(args) >= LOGGED_LEVEL
    const decoded = decodePreference(file, text, (location, line) => {
      if (isLogged) stderr.write(logLine('I', clock.now(), location, line))
    })
    if (decoded !== undefined && decoded.strictError !== '') {
      stderr.write(`kuberc: ignoring strict decoding error in ${file}: ${decoded.strictError}`)
    }
    return decoded?.preference
  } catch (error) {
    if (isExplicit) throw new KubectlError(`kuberc: ${asError(error).message}`, { cause: error })
    stderr.write(`kuberc: no preferences loaded from ${file}: ${asError(error).message}`)
    return undefined
  }
}
