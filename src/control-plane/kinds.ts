/** What is served: every kind with its rules, and the subresources that lead elsewhere. */
import type { Kind } from '#apis/kinds.ts'
import type { Authenticator } from '#apiserver/authenticators/index.ts'
import { createEscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { createConnectSubresources } from '#apiserver/connect/connector.ts'
import type { Connectors } from '#apiserver/dispatch.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Resource } from '#apiserver/registry/resource.ts'
import { algorithmOf } from '#lib/jwt/key.ts'
import { createSigner, type TokenSigner } from '#lib/jwt/token.ts'
import { ProgramError } from '#lib/program.ts'
import { parsePrivateKey } from '#lib/x509/key.ts'
import { isStable } from '#meta/kind.ts'
import { defineComponentStatus } from '#resources/core/componentstatus.ts'
import { bindPod } from '#resources/core/pod/binding.ts'
import { evictPod } from '#resources/core/pod/eviction.ts'
import { createServiceAccountTokenHandler } from '#resources/core/serviceaccount-token.ts'
import { createResources } from '#resources/index.ts'
import { createReviews } from '#resources/reviews.ts'

import type { Authorization } from './access.ts'
import { createAskUrl, createComponentProbes } from './component-probes.ts'
import { createServedRule } from './flags/runtime-config.ts'
import { loadKubelet } from './kubelet.ts'
import { readText } from './live-files.ts'
import type { ServiceParts } from './service-parts.ts'
import type { Site } from './site.ts'

export interface Access extends Authorization {
  readonly authenticator: Authenticator
}

/** Adds every kind that is asked for to the registry. */
export async function addKinds(
  { settings, plan, clock, isEnabled, metrics }: Site,
  registry: Registry,
  { authorizer, authenticator, roles }: Access,
  services: ServiceParts,
): Promise<void> {
  const isServed = createServedRule(plan.runtimeConfig, isEnabled)
  const resources = createResources({
    services: services.allocator,
    escalation: createEscalationChecks({ authorizer, index: roles }),
    authorizer,
    metrics,
    resourceOf: (kind) => registry.findKind(kind)?.resource.kind.plural,
    eventTtlMs: settings['event-ttl'],
  })
  for (const resource of storedResources(resources, isServed)) await registry.add(resource, isServed)
  const reviews = createReviews({ authorizer, authenticateToken: authenticator.authenticateToken })
  for (const review of reviews.filter(({ kind }) => isServed(kind))) registry.addReview(review)
  const { backend } = registry.services
  const components = defineComponentStatus(createComponentProbes({ backend, ask: createAskUrl(clock) }))
  if (isServed(components.kind)) registry.addVirtual(components)
}

/** Alpha and beta kinds that are off are not even watched; others are, because the server itself may depend on them. */
function storedResources(resources: readonly Resource[], isServed: (kind: Kind) => boolean): readonly Resource[] {
  const isWanted = (kind: Kind): boolean => isStable(kind.version) || isServed(kind)
  return resources.filter(({ kind, otherVersions = [] }) =>
    [kind, ...otherVersions.map((one) => one.kind)].some(isWanted),
  )
}

/** Throws ProgramError for files that cannot be used. */
export async function openConnectors(site: Site): Promise<Connectors> {
  const { settings, plan, closing } = site
  const connect = createConnectSubresources({ ...site, kubelet: await loadKubelet(site) })
  closing.defer(() => connect.close())
  return {
    'pods/binding': { create: bindPod },
    'pods/eviction': { create: evictPod },
    'serviceaccounts/token': {
      create: createServiceAccountTokenHandler({
        signer: await readSigner(site),
        issuer: settings['service-account-issuer'][0] ?? '',
        apiAudiences: plan.apiAudiences,
        maxExpirationSeconds: Math.floor(settings['service-account-max-token-expiration'] / 1000),
        extendExpiration: settings['service-account-extend-token-expiration'],
      }),
    },
    ...connect.connectors,
  }
}

const SIGNING_KEY = 'service-account-signing-key-file'

async function readSigner({ settings, readFile }: Site): Promise<TokenSigner> {
  const pem = await readText(readFile, settings[SIGNING_KEY], `--${SIGNING_KEY}: `)
  try {
    const key = parsePrivateKey(pem)
    algorithmOf(key)
    return createSigner(key)
  } catch (cause) {
    throw new ProgramError(`--${SIGNING_KEY}: ${(cause as Error).message}`, { cause })
  }
}
