/** Takes what a cluster made of links and rules off this machine again. All names follow from the data directory. */
import { placesOf } from '#kubelet/containerd/places.ts'
import { createIpRoute } from '#lib/iproute.ts'
import { applyNft, removeTable } from '#network/nft.ts'

/** Whether there was any. Harmless where there is none. Its containers must have ended. */
export async function removeLinks(dataDir: string): Promise<boolean> {
  const { network, nodeBridge, overlay, table } = placesOf(dataDir)
  const ip = createIpRoute()
  // Where there is no such program nothing was made with it.
  const links = await ip.links().catch(() => [])
  const own = links.map(({ ifname }) => ifname).filter((name) => [network, nodeBridge, overlay].includes(name))
  if (own.length === 0) return false
  await ip.ip(own.map((name) => ['link', 'delete', 'dev', name]))
  await applyNft(removeTable({ family: 'inet', name: table }))
  return true
}
