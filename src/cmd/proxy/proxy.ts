/**
 * `kube-proxy`: routes traffic for Services on a node as a separate program with upstream's flags and configuration.
 */
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'

import { aborted } from '#lib/abort.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { durationMs } from '#lib/go/duration.ts'
import type { PagesOptions } from '#lib/http/pages.ts'
import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics/process.ts'
import { tidyWhenQuiet } from '#lib/process/tidy-memory.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { kubernetesVersion } from '#model/version.ts'
import { type ProxyConfiguration, shownProxyConfiguration, withProxyDefaults } from '#proxy/configuration.ts'
import { systemConntrack } from '#proxy/conntrack.ts'
import { serveHealth, serveStatus } from '#proxy/ports.ts'
import { createProxyMeters } from '#proxy/proxy-metrics.ts'
import { type RunningProxy, startProxy } from '#proxy/proxy.ts'
import { applySystemSettings } from '#proxy/system-settings.ts'

import { cleanUp, createBackends } from './backends.ts'
import { loadProxy } from './configuration.ts'
import { PROXY_FLAGS, type ProxySettings } from './flags.ts'
import { allowLocalhostNodePorts } from './iptables-backends.ts'
import { connect, findNode, nodeNameOf } from './node.ts'
import { PROXY_MODES, type ProxyMode, type ProxyProgram } from './program.ts'

const NAME = 'kube-proxy'

export const proxy: Program = defineProgram({
  name: NAME,
  aliases: ['proxy'],
  long:
    'The Kubernetes network proxy runs on each node. It watches Services and their endpoints, and maintains kernel rules ' +
    'that send traffic for a Service to one of its endpoints. The rules stay when it exits: --cleanup removes them.',
  version: kubernetesVersion(),
  flags: PROXY_FLAGS,
  run: runProxy,
})

async function runProxy(invocation: Invocation<FlagGroups>, signal: AbortSignal): Promise<number> {
  // The table of flags defines every setting with its type.
  const settings = invocation.flags as unknown as ProxySettings
  const configuration = await loadProxy(invocation, settings)
  const { log, clock } = invocation
  if (settings['write-config-to'] !== '') return writeConfiguration(invocation, settings['write-config-to'])
  if (settings.cleanup) return (await cleanUp(PROXY_MODES, log)) ? 0 : 1
  const mode = modeOf(configuration)
  await applySystemSettings(configuration, log)
  if (mode === 'iptables') await allowLocalhostNodePorts({ configuration, log })
  if (settings['init-only']) {
    log.info('System initialized and --init-only specified')
    return 0
  }
  // A sync leaves little garbage; the young generation would grow in the first sync and stay large.
  setFlagsFromString('--semi-space-growth-factor=1')
  await using closing = new AsyncDisposableStack()
  closing.use(tidyWhenQuiet(clock))
  const registry = createRegistry()
  registerProcessMetrics(registry, readProcess(clock))
  log.info('Starting kube-proxy', { version: invocation.version ?? kubernetesVersion().number, mode })
  await run({ ...invocation, settings, configuration, mode, closing, signal }, registry)
  await aborted(signal)
  return 0
}

/** Throws ProgramError. */
async function run(program: ProxyProgram, registry: Registry): Promise<void> {
  const { configuration, mode, clock, random, log, closing } = program
  const meters = createProxyMeters(registry)
  const client = await connect(program)
  const nodeName = nodeNameOf(program)
  // Removes rules of the other mode, which would remain in effect.
  const tidied = cleanUp(
    PROXY_MODES.filter((one) => one !== mode),
    log,
  )
  let node = await findNode(program, client, nodeName)
  const { syncPeriod, minSyncPeriod } = configuration[mode]
  const syncMs = durationMs(syncPeriod)
  const { ruleSyncer }: RunningProxy = startProxy(
    {
      client,
      nodeName,
      backends: await createBackends(program, node, meters),
      clock,
      random,
      log,
      meters,
      conntrack: systemConntrack(),
      healthHosts: ['0.0.0.0'],
      minSyncMs: durationMs(minSyncPeriod),
      syncMs,
      onNode: (seen) => {
        node = seen
      },
    },
    closing,
  )
  await tidied
  const around: PagesOptions = { clock, log, closing, isFatal: configuration.bindAddressHardFail }
  await serveHealth(
    configuration.healthzBindAddress,
    { meters, node: () => node, facts: () => ({ standing: ruleSyncer.syncStates, syncMs, nowMs: clock.now() }) },
    around,
  )
  const configz = shownProxyConfiguration(configuration)
  await serveStatus(configuration.metricsBindAddress, { registry, mode, configz }, around)
}

/** The default is nftables, which every supported kernel has; upstream's is still iptables. Throws ProgramError. */
function modeOf({ mode: requested }: ProxyConfiguration): ProxyMode {
  const mode = PROXY_MODES.find((one) => one === (requested === '' ? 'nftables' : requested))
  if (mode === undefined) throw new ProgramError(`mode "${requested}" is not supported: use nftables or iptables`)
  return mode
}

async function writeConfiguration({ log, cwd }: Invocation<FlagGroups>, file: string): Promise<number> {
  await writeFile(resolve(cwd, file), stringifyYaml(shownProxyConfiguration(withProxyDefaults())))
  log.info('Wrote configuration', { file })
  return 0
}
