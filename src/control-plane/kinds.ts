/** Selects the served kinds with their rules, and the connector subresources. */
import type { Kind } from '#apis/kinds.ts'
import { createConnectSubresources } from '#apiserver/connect/connector.ts'
import type { Connectors } from '#apiserver/dispatch.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Resource } from '#apiserver/registry/resource.ts'
import type { Authenticator } from '#auth/authenticators/index.ts'
import { createEscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import { readText } from '#component/live-files.ts'
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
import type { Environment } from './environment.ts'
import { createServedRule } from './flags/runtime-config.ts'
import { loadKubelet } from './kubelet.ts'
import type { ServiceParts } from './service-parts.ts'

export interface Access extends Authorization {
  readonly authenticator: Authenticator
}

/** Adds every enabled kind to the registry. */
export async function addKinds(
  environment: Environment,
  registry: Registry,
  access: Access,
  services: ServiceParts,
): Promise<void> {
  await addStoredKinds(environment, registry, access, services)
  const { plan, clock, isEnabled } = environment
  const isServed = createServedRule(plan.runtimeConfig, isEnabled)
  const { authorizer, authenticator } = access
  const reviews = createReviews({ authorizer, authenticateToken: authenticator.authenticateToken })
  for (const review of reviews.filter(({ kind }) => isServed(kind))) registry.addReview(review)
  const { backend } = registry.services
  const components = defineComponentStatus(createComponentProbes({ backend, ask: createAskUrl(clock) }))
  if (isServed(components.kind)) registry.addVirtual(components)
}

/** Adds every enabled kind whose objects are stored. */
export async function addStoredKinds(
  { settings, plan, isEnabled, metrics }: Environment,
  registry: Registry,
  { authorizer, roles }: Pick<Authorization, 'authorizer' | 'roles'>,
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
}

/** Disabled alpha and beta kinds are not watched; others are, because the server itself may depend on them. */
function storedResources(resources: readonly Resource[], isServed: (kind: Kind) => boolean): readonly Resource[] {
  const isWanted = (kind: Kind): boolean => isStable(kind.version) || isServed(kind)
  return resources.filter(({ kind, otherVersions = [] }) =>
    [kind, ...otherVersions.map((one) => one.kind)].some(isWanted),
  )
}

/** Throws ProgramError for unusable files. */
export async function openConnectors(environment: Environment): Promise<Connectors> {
  const { settings, plan, closing } = environment
  const connect = createConnectSubresources({ ...environment, kubelet: await loadKubelet(environment) })
  closing.defer(() => connect.close())
  return {
    'pods/binding': { create: bindPod },
    'pods/eviction': { create: evictPod },
    'serviceaccounts/token': {
      create: createServiceAccountTokenHandler({
        signer: await readSigner(environment),
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

async function readSigner({ settings, readFile }: Environment): Promise<TokenSigner> {
  const pem = await readText(readFile, settings[SIGNING_KEY], `--${SIGNING_KEY}: `)
  try {
    const key = parsePrivateKey(pem)
    algorithmOf(key)
    return createSigner(key)
  } catch (cause) {
    throw new ProgramError(`--${SIGNING_KEY}: ${(cause as Error).message}`, { cause })
  }
}
