/** Takes what a cluster made on this machine off it again: links and rules, and its further nodes. All names follow from the data directory. */
import { readdir, rm, rmdir } from 'node:fs/promises'

import { placesOf } from '#kubelet/containerd/places.ts'
import { removeContainerd, stopContainerd, type StopOptions } from '#kubelet/containerd/stop.ts'
import { createIpRoute } from '#lib/iproute.ts'

import { endNodeProcess } from './further-nodes.ts'
import { SIXTH } from './machine-flannel.ts'
import { removeMachineFolders } from './machine-folders.ts'
import { hasNamespace, nodePlace, type NodePlace, nodesFolder, removeNamespace } from './node-namespace.ts'

/** Whether there were any. Harmless where there are none. Its containers must have ended, with whom rules go. */
export async function removeLinks(dataDir: string): Promise<boolean> {
  const { network, nodeBridge, overlay } = placesOf(dataDir)
  const ip = createIpRoute()
  // Where there is no such program nothing was made with it.
  const links = await ip.links().catch(() => [])
  // The overlay goes with the link below it: it comes first.
  const own = [`${overlay}${SIXTH}`, overlay, network, nodeBridge].filter((name) =>
    links.some(({ ifname }) => ifname === name),
  )
  if (own.length === 0) return false
  await ip.ip(own.map((name) => ['link', 'delete', 'dev', name]))
  return true
}

/** Those that the cluster has beside the machine itself, running or not. */
export async function furtherNodesIn(dataDir: string): Promise<readonly NodePlace[]> {
  const names = await readdir(nodesFolder(dataDir)).catch(() => [])
  return names.filter((name) => /^\d+$/.test(name)).map((name) => nodePlace(dataDir, Number(name)))
}

/** Ends their pods and processes and takes their namespaces away; whether any of it was running. */
export async function stopFurtherNodes(options: StopOptions): Promise<boolean> {
  return stopNodes(options, await furtherNodesIn(options.dataDir))
}

async function stopNodes(options: StopOptions, nodes: readonly NodePlace[]): Promise<boolean> {
  let wasRunning = false
  for (const node of nodes) {
    await endNodeProcess(node, options.clock)
    const own = { ...options, dataDir: node.dataDir, ...((await hasNamespace(node)) && { within: node.within }) }
    wasRunning = (await stopContainerd(own)) || wasRunning
    await removeNamespace(node)
  }
  return wasRunning
}

/** And all that they kept: of all, or of those with a number above `above`, whose names are returned. */
export async function removeFurtherNodes(options: StopOptions, above = 0): Promise<readonly string[]> {
  const going = (await furtherNodesIn(options.dataDir)).filter(({ number }) => number > above)
  await stopNodes(options, going)
  for (const { dataDir } of going) {
    await removeContainerd({ ...options, dataDir })
    await removeMachineFolders(dataDir)
    await rm(dataDir, { recursive: true, force: true })
  }
  await rmdir(nodesFolder(options.dataDir)).catch(() => undefined)
  return going.map(({ name }) => name)
}
