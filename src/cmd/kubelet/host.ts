/** What the machine has to be like before a kubelet runs on it. */
import { readFile } from 'node:fs/promises'

import { settleKernel } from '#kubelet/machine/kernel-settings.ts'
import { ProgramError } from '#lib/program.ts'

import type { KubeletProgram } from './program.ts'

/** Throws ProgramError. `sysctls`: where the settings of the kernel are. */
export async function prepareHost(
  { configuration, isEnabled, log }: Pick<KubeletProgram, 'configuration' | 'isEnabled' | 'log'>,
  sysctls = '/proc/sys',
): Promise<void> {
  if (configuration.failSwapOn) await checkSwap()
  const protects = configuration.protectKernelDefaults === true
  const isTolerant = isEnabled('KubeletInUserNamespace')
  await settleKernel({ protects, log, isTolerant, folder: sysctls }).catch((cause: Error) => {
    throw new ProgramError(`Failed to start ContainerManager: ${cause.message}`, { cause })
  })
}

async function checkSwap(): Promise<void> {
  // One line says what the columns are.
  const swaps = await readFile('/proc/swaps', 'utf8').catch(() => '')
  if (swaps.trim().split('\n').length > 1) {
    throw new ProgramError(
      'failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false',
    )
  }
}
