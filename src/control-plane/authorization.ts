/**
 * Builds authorization from the flags: the webhook of mode Webhook, or the authorizers of a file that is reloaded when
 * it changes.
 */
import type { AuthorizerChain, ConfiguredAuthorizer } from '#auth/authorizers/index.ts'
import type { WebhookAuthorizerOptions } from '#auth/authorizers/webhook.ts'
import type { LiveFiles } from '#component/live-files.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { ProgramError } from '#lib/program.ts'
import { fileErrorText } from '#meta/config-kind.ts'

import { type AuthorizerSettings, loadAuthorizers, parseAuthorizationConfig } from './config/authorization-config.ts'
import type { Settings } from './flags/flags.ts'
import { createReviewClient } from './review-client.ts'

export interface AuthorizationTools {
  readonly clock: Clock
  readonly log: Logger
  readonly files: LiveFiles
  readonly readFile: (path: string) => Promise<string>
}

/** Throws ProgramError, with upstream's texts for errors in `--authorization-config`. */
export async function loadAuthorization(
  flags: Settings,
  tools: AuthorizationTools,
): Promise<{ readonly webhook?: WebhookAuthorizerOptions; readonly authorizers?: AuthorizerChain }> {
  const { clock } = tools
  const config = flags['authorization-config']
  if (config !== '') return { authorizers: await followAuthorizers(config, tools) }
  const file = flags['authorization-webhook-config-file']
  if (file === '') return {}
  return {
    webhook: {
      clock,
      send: await createReviewClient(file, tools),
      version: flags['authorization-webhook-version'],
      authorizedTtlMs: flags['authorization-webhook-cache-authorized-ttl'],
      unauthorizedTtlMs: flags['authorization-webhook-cache-unauthorized-ttl'],
    },
  }
}

async function followAuthorizers(file: string, tools: AuthorizationTools): Promise<AuthorizerChain> {
  const { files, readFile, log } = tools
  let apply: (next: readonly ConfiguredAuthorizer[]) => void = () => undefined
  const change = async (settings: readonly AuthorizerSettings[]): Promise<void> => {
    try {
      apply(await loadAuthorizers(settings, tools))
    } catch (error) {
      log.error(error, 'reloading authorization config')
    }
  }
  try {
    const first = await loadAuthorizers(parseAuthorizationConfig(await readFile(file)), tools)
    await files.open(
      [file],
      ([source = '']) => parseAuthorizationConfig(source),
      (next) => void change(next),
    )
    return {
      first,
      follow(listener) {
        apply = listener
      },
    }
  } catch (cause) {
    throw new ProgramError(fileErrorText(file, cause as Error), { cause })
  }
}
