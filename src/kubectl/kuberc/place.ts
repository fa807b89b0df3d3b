/** Where the file with preferences is. Every start asks, so there is little here. */
import { join } from 'node:path'

import { KubectlError } from '../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface KubercPlace {
  readonly file: string
  /** It was asked for: it must be there and be read. */
  readonly isExplicit: boolean
}

/** False: there are no preferences, no flag and no command for them. */
export function hasKuberc(env: Env): boolean {
  return (env['KUBECTL_KUBERC'] ?? '').toLowerCase() !== 'false'
}

/** Undefined when preferences are turned off. `explicit` is what `--kuberc` says. Throws KubectlError. */
export function kubercPlace(explicit: string, env: Env): KubercPlace | undefined {
  const { KUBERC: named = '', HOME: home = '' } = env
  if (named === 'off') {
    if (explicit === '') return undefined
    throw new KubectlError('disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive')
  }
  const file = join(home, '.kube', 'kuberc')
  if (explicit !== '' && explicit !== file) return { file: explicit, isExplicit: true }
  return named === '' ? { file, isExplicit: explicit !== '' } : { file: named, isExplicit: true }
}

/** What `--kuberc` says in a line of which nobody knows the command yet. Throws KubectlError. */
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
