/** Removes the cluster's links, rules and extra nodes from this machine. All names derive from the data directory. */
import { readdir, rm, rmdir } from 'node:fs/promises'

import { containerdPaths } from '#containerd/paths.ts'
import { removeContainerd, stopContainerd, type StopOptions } from '#containerd/stop.ts'
import { createIpRoute } from '#lib/net/iproute.ts'

import { endNodeProcess } from './extra-nodes.ts'
import { SIXTH } from './machine-flannel.ts'
import { removeMachineFolders } from './machine-folders.ts'
import { extraNode, type ExtraNode, hasNamespace, nodesFolder, removeNamespace } from './node-namespace.ts'

/** Returns whether there were any. Call after the containers have stopped, which removes their rules. */
export async function removeLinks(dataDir: string): Promise<boolean> {
  const { network, nodeBridge, overlay } = containerdPaths(dataDir)
  const ip = createIpRoute()
  // Without the program nothing was created with it.
  const links = await ip.links().catch(() => [])
  // The overlay first, because it goes with its parent link.
  const own = [`${overlay}${SIXTH}`, overlay, network, nodeBridge].filter((name) =>
    links.some(({ ifname }) => ifname === name),
  )
  if (own.length === 0) return false
  await ip.ip(own.map((name) => ['link', 'delete', 'dev', name]))
  return true
}

/** The extra nodes of the cluster, running or not. */
export async function extraNodesIn(dataDir: string): Promise<readonly ExtraNode[]> {
  const names = await readdir(nodesFolder(dataDir)).catch(() => [])
  return names.filter((name) => /^\d+$/.test(name)).map((name) => extraNode(dataDir, Number(name)))
}

/** Stops their pods and processes and deletes their namespaces; returns whether any was running. */
export async function stopExtraNodes(options: StopOptions): Promise<boolean> {
  return stopNodes(options, await extraNodesIn(options.dataDir))
}

async function stopNodes(options: StopOptions, nodes: readonly ExtraNode[]): Promise<boolean> {
  let wasRunning = false
  for (const node of nodes) {
    await endNodeProcess(node, options.clock)
    const own = { ...options, dataDir: node.dataDir, ...((await hasNamespace(node)) && { within: node.within }) }
    wasRunning = (await stopContainerd(own)) || wasRunning
    await removeNamespace(node)
  }
  return wasRunning
}

/** Also deletes their data: of all, or of those numbered above `above`. Returns their names. */
export async function removeExtraNodes(options: StopOptions, above = 0): Promise<readonly string[]> {
  const going = (await extraNodesIn(options.dataDir)).filter(({ number }) => number > above)
  await stopNodes(options, going)
  for (const { dataDir } of going) {
    await removeContainerd({ ...options, dataDir })
    await removeMachineFolders(dataDir)
    await rm(dataDir, { recursive: true, force: true })
  }
  await rmdir(nodesFolder(options.dataDir)).catch(() => undefined)
  return going.map(({ name }) => name)
}
