/** Finds the path of the kuberc file. Every start runs this, so it imports little. */
import { join } from 'node:path'

import { KubectlError } from '../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface KubercLocation {
  readonly file: string
  /** The user gave the path: the file must exist and be readable. */
  readonly isExplicit: boolean
}

/** False disables preferences, with their flag and command. */
export function hasKuberc(env: Env): boolean {
  return (env['KUBECTL_KUBERC'] ?? '').toLowerCase() !== 'false'
}

/** Undefined if preferences are disabled. `explicit` is the value of `--kuberc`. Throws KubectlError. */
export function kubercLocation(explicit: string, env: Env): KubercLocation | undefined {
  const { KUBERC: named = '', HOME: home = '' } = env
  if (named === 'off') {
    if (explicit === '') return undefined
    throw new KubectlError('disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive')
  }
  const file = join(home, '.kube', 'kuberc')
  if (explicit !== '' && explicit !== file) return { file: explicit, isExplicit: true }
  return named === '' ? { file, isExplicit: explicit !== '' } : { file: named, isExplicit: true }
}

/** The value of `--kuberc` in a line whose command is not known yet. Throws KubectlError. */
export function explicitKuberc(args: readonly string[]): string {
  for (const [at, arg] of args.entries()) {
    if (arg === '--') break
    const isAlone = arg === '--kuberc'
    if (!isAlone && !arg.includes('--kuberc=')) continue
    const file = isAlone ? args[at + 1] : arg.split('=')[1]
    if (file === undefined || (file === '' && !isAlone)) throw new KubectlError('kuberc file is not found')
    return file
  }
  return ''
}
