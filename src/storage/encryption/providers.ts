/**
 * Opens the encryption providers of a configuration. A new configuration replaces the old one when its plugins are
 * healthy.
 */
import { type Clock, sleep } from '#lib/clock.ts'

import { type AtRest, compileRules, createAtRestOf, createKeyed, type Rule } from './at-rest.ts'
import type { EncryptionConfig, KmsConfig, ProviderConfig } from './config.ts'
import type { Kms, KmsServices } from './kms.ts'
import type { Sealer } from './transformer.ts'

export interface OpenAtRest extends AtRest {
  readonly check: () => Promise<void>
  /** Applies a new configuration. Rejects and changes nothing if its plugins are not healthy in time. */
  reload(config: EncryptionConfig): Promise<void>
  close(): void
}

export async function openAtRest(config: EncryptionConfig, services: KmsServices): Promise<OpenAtRest> {
  let current = await openProviders(config, services)
  const atRest = createAtRestOf(current.rules)
  return {
    ...atRest,
    check: () => current.check(),
    async reload(next) {
      const opened = await openProviders(next, services)
      try {
        await untilWell(opened, services.clock)
      } catch (error) {
        opened.close()
        throw error
      }
      const old = current
      current = opened
      atRest.use(opened.rules)
      // Running requests may finish.
      services.clock.after(old.graceMs, () => old.close(), { background: true })
    },
    close: () => current.close(),
  }
}

interface Providers {
  readonly rules: readonly Rule[]
  /** Longer than any request to its plugins. */
  readonly graceMs: number
  check(): Promise<void>
  close(): void
}

async function openProviders(config: EncryptionConfig, services: KmsServices): Promise<Providers> {
  const configured = config.resources.flatMap(({ providers }) => providers)
  const sealers = new Map<ProviderConfig, readonly Sealer[]>()
  const plugins: Kms[] = []
  for (const provider of configured) {
    if (provider.type === 'kms') {
      const { openKms } = await import('./kms.ts')
      const plugin = await openKms(provider, services)
      plugins.push(plugin)
      sealers.set(provider, [plugin])
    } else if (provider.type === 'secretbox') {
      const { createSecretbox } = await import('./secretbox.ts')
      sealers.set(
        provider,
        provider.keys.map((key) => createSecretbox(key, services.random)),
      )
    }
  }
  const timeouts = configured.filter((one): one is KmsConfig => one.type === 'kms').map(({ timeoutMs }) => timeoutMs)
  return {
    rules: compileRules(config, (provider) => sealers.get(provider) ?? createKeyed(provider, services.random)),
    graceMs: 2 * timeouts.reduce((sum, timeoutMs) => sum + timeoutMs, 0),
    check: () => checkAll(plugins),
    close: () => plugins.forEach((plugin) => plugin.close()),
  }
}

async function checkAll(plugins: readonly Kms[]): Promise<void> {
  const texts: string[] = []
  for (const [at, plugin] of plugins.entries()) {
    await plugin.check().catch((error: Error) => texts.push(`kms-provider-${at}: ${error.message}`))
  }
  if (texts.length > 0) throw new Error(texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`)
}

const POLL_MS = 100
const MIN_PATIENCE_MS = 10_000

async function untilWell(providers: Providers, clock: Clock): Promise<void> {
  const deadlineMs = clock.elapsed() + Math.max(providers.graceMs, MIN_PATIENCE_MS)
  for (;;) {
    try {
      return await providers.check()
    } catch (cause) {
      if (clock.elapsed() >= deadlineMs) {
        const what = 'health check for new transformers failed, polling error context deadline exceeded'
        throw new Error(`${what}: ${(cause as Error).message}`, { cause })
      }
    }
    await sleep(clock, POLL_MS)
  }
}
