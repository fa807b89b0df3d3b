/** The options of a session of `hyperkube build`. */
import type { ProgramContext } from '#lib/program.ts'

import type { ClusterFile } from '../cluster.ts'
import type { PkiTools } from '../pki/bundle.ts'
import type { CurrentMaterial, Stage } from '../state/stages.ts'
import type { BuildSettings, CertificateSettings } from './settings.ts'

export type RunKubectl = (
  command: { readonly args: readonly string[]; readonly input: string },
  signal: AbortSignal,
) => Promise<void>

export interface SessionOptions extends Omit<ProgramContext, 'path' | 'args'> {
  readonly flags: BuildSettings & Partial<CertificateSettings>
  readonly say: (text: string) => void
  /** Runs kubectl. Rejects with ProgramError and the output of a failed command. */
  readonly kubectl: RunKubectl
  /** The stages of certificates and keys; by default those that the file requires. */
  readonly change?: Change
}

export type Change = (cluster: ClusterFile, current: CurrentMaterial, tools: PkiTools) => Stage[]
