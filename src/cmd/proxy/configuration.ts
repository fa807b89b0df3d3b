/** Loads the configuration of kube-proxy from its file or from flags. */
import { resolve } from 'node:path'

import { withFlags } from '#component/flags/config-flags.ts'
import { gateErrors } from '#component/flags/gates.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { fileErrorText } from '#meta/config-kind.ts'
import {
  type GivenProxyConfiguration,
  PROXY_CONFIGURATION,
  type ProxyConfiguration,
  proxyConfigurationErrors,
  readProxyConfiguration,
  withProxyDefaults,
} from '#proxy/configuration.ts'

import { PROXY_FLAGS, type ProxySettings } from './flags.ts'

/** Throws ProgramError with upstream's texts. */
export async function loadProxy(
  invocation: Invocation<FlagGroups>,
  settings: ProxySettings,
): Promise<ProxyConfiguration> {
  const { flags, changed, log } = invocation
  const given =
    settings.config === ''
      ? withFlags(PROXY_CONFIGURATION, {}, invocation)
      : await readFile(invocation, settings.config)
  const configuration = withProxyDefaults(given)
  const featureGates = new Map([...Object.entries(configuration.featureGates), ...settings['feature-gates']])
  const support = findUnsupported(PROXY_FLAGS, flags, changed)
  const errors = [
    ...support.errors,
    ...gateErrors(featureGates),
    ...proxyConfigurationErrors(configuration),
    ...(configuration.enableProfiling ? ['enableProfiling is not supported: Node has no Go profiles'] : []),
  ]
  if (errors.length > 0) throw new ProgramError(errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`)
  for (const note of support.notes) log.info(note)
  return configuration
}

async function readFile(
  { cwd, readFile: read, log }: Invocation<FlagGroups>,
  file: string,
): Promise<GivenProxyConfiguration> {
  const path = resolve(cwd, file)
  const source = await read(path).catch((cause: NodeJS.ErrnoException) => {
    throw new ProgramError(`failed complete: ${fileErrorText(path, cause)}`, { cause })
  })
  try {
    return readProxyConfiguration(source, (err) =>
      log.info('Using lenient decoding as strict decoding failed', { err }),
    )
  } catch (cause) {
    throw new ProgramError(`failed complete: ${(cause as Error).message}`, { cause })
  }
}
