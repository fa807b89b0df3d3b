/** Prepares the machine for a kubelet: checks swap and sets kernel parameters. */
import { readFile } from 'node:fs/promises'

import { applyKernelSettings } from '#kubelet/machine/kernel-settings.ts'
import { ProgramError } from '#lib/program.ts'

import type { KubeletProgram } from './program.ts'

/** Throws ProgramError. `sysctls`: the directory of kernel parameters. */
export async function prepareHost(
  { configuration, isEnabled, log }: Pick<KubeletProgram, 'configuration' | 'isEnabled' | 'log'>,
  sysctls = '/proc/sys',
): Promise<void> {
  if (configuration.failSwapOn) await checkSwap()
  const protects = configuration.protectKernelDefaults === true
  const isTolerant = isEnabled('KubeletInUserNamespace')
  await applyKernelSettings({ protects, log, isTolerant, folder: sysctls }).catch((cause: Error) => {
    throw new ProgramError(`Failed to start ContainerManager: ${cause.message}`, { cause })
  })
}

async function checkSwap(): Promise<void> {
  // The first line contains the column names.
  const swaps = await readFile('/proc/swaps', 'utf8').catch(() => '')
  if (swaps.trim().split('\n').length > 1) {
    throw new ProgramError(
      'failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false',
    )
  }
}
