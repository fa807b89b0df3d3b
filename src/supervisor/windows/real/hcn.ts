/** Calls the Host Compute Network service of this machine, through PowerShell. */
import type { HcnNetwork, HcnPolicy, HostComputeNetworks } from '#lib/hns/hcn.ts'

import { type PowerShell, runPowerShell } from './powershell.ts'

export function hostComputeNetworks(shell: PowerShell = runPowerShell): HostComputeNetworks {
  const change = async (id: string, RequestType: 'Add' | 'Remove', Policies: readonly HcnPolicy[]): Promise<void> => {
    const settings = JSON.stringify({ ResourceType: 'Policy', RequestType, Settings: { Policies } })
    await shell('hcn', { action: 'modify', id, settings })
  }
  return {
    list: async () => JSON.parse(await shell('hcn', { action: 'list', id: '', settings: '' })) as HcnNetwork[],
    create: async (network) =>
      void (await shell('hcn', { action: 'create', id: '', settings: JSON.stringify(network) })),
    remove: async (id) => void (await shell('hcn', { action: 'remove', id, settings: '' })),
    add: (id, policies) => change(id, 'Add', policies),
    take: (id, policies) => change(id, 'Remove', policies),
  }
}
