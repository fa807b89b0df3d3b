/** `kube-proxy`: routes traffic for Services on this node, as a program of its own, with upstream's flags and configuration. */
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'

import { aborted } from '#lib/abort.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import type { PagesOptions } from '#lib/http/pages.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics-process.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { tidyWhenQuiet } from '#lib/tidy-memory.ts'
import { stringifyYaml } from '#lib/yaml-write.ts'
import { durationMs } from '#meta/duration.ts'
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
    'The Kubernetes network proxy runs on each node. It follows Services and their endpoints, and keeps rules in the kernel ' +
    'that lead what is sent to a Service to one of its endpoints. Rules stay when it ends: --cleanup removes them.',
  version: kubernetesVersion(),
  flags: PROXY_FLAGS,
  run: runProxy,
})

async function runProxy(invocation: Invocation<FlagGroups>, signal: AbortSignal): Promise<number> {
  // Every setting is in the table of flags, with its type.
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
  // What a round leaves behind is little; room for young objects, once taken for the first, would stay.
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
  // Who ran in another mode before has left rules that would go on to be followed.
  const tidied = cleanUp(
    PROXY_MODES.filter((one) => one !== mode),
    log,
  )
  let node = await findNode(program, client, nodeName)
  const { syncPeriod, minSyncPeriod } = configuration[mode]
  const syncMs = durationMs(syncPeriod)
  const { keeper }: RunningProxy = startProxy(
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
    { meters, node: () => node, facts: () => ({ standing: keeper.standing, syncMs, nowMs: clock.now() }) },
    around,
  )
  const configz = shownProxyConfiguration(configuration)
  await serveStatus(configuration.metricsBindAddress, { registry, mode, configz }, around)
}

/** What is not said is nftables, where upstream still takes iptables: it is there wherever we run. Throws ProgramError. */
function modeOf({ mode: asked }: ProxyConfiguration): ProxyMode {
  const mode = PROXY_MODES.find((one) => one === (asked === '' ? 'nftables' : asked))
  if (mode === undefined) throw new ProgramError(`mode "${asked}" is not supported: use nftables or iptables`)
  return mode
}

async function writeConfiguration({ log, cwd }: Invocation<FlagGroups>, file: string): Promise<number> {
  await writeFile(resolve(cwd, file), stringifyYaml(shownProxyConfiguration(withProxyDefaults())))
  log.info('Wrote configuration', { file })
  return 0
}
