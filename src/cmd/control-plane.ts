import { type AdmissionFlags, createAdmission } from '#admission/index.ts'
import { createRegistryQuotaWriter } from '#admission/resource-quota/registry-writer.ts'
/**
 * The API server of a cluster, put together from its parts: which kinds, who may, what is let in. `kube-apiserver` and
 * `up` start the same one with different settings.
 */
import type { Kind } from '#apis/kinds.ts'
import { type ApiServer, type ApiServerParts, startApiServer } from '#apiserver/apiserver.ts'
import {
  type Authenticator,
  type AuthenticatorSettings,
  authenticatorsFor,
  createAuthenticator,
} from '#apiserver/authenticators/index.ts'
import { createLiveObjects } from '#apiserver/authenticators/live-objects.ts'
import { asAuthorize, type Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { createAuthorizer } from '#apiserver/authorizers/index.ts'
import { followNodeGraph } from '#apiserver/authorizers/node/follow-node.ts'
import { NodeGraph } from '#apiserver/authorizers/node/graph.ts'
import { createNodeAuthorizer } from '#apiserver/authorizers/node/node.ts'
import { createEscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { followRbac } from '#apiserver/authorizers/rbac/follow-rbac.ts'
import { RbacIndex } from '#apiserver/authorizers/rbac/rbac.ts'
import type { WebhookAuthorizerOptions } from '#apiserver/authorizers/webhook.ts'
import { ensureApiServices } from '#apiserver/bootstrap/apiservices.ts'
import { type AuthenticationConfig, ensureAuthenticationConfig } from '#apiserver/bootstrap/authentication-config.ts'
import { startDefinitionCleanup } from '#apiserver/bootstrap/definition-cleanup.ts'
import { ensureFlowControl } from '#apiserver/bootstrap/flow-control.ts'
import { ensurePolicy } from '#apiserver/bootstrap/policy.ts'
import { startPublishers } from '#apiserver/bootstrap/publishers.ts'
import { nodeRules } from '#apiserver/bootstrap/roles.ts'
import { ensureSystemObjects } from '#apiserver/bootstrap/system-objects.ts'
import type { Connectors } from '#apiserver/dispatch.ts'
import { createImpersonation } from '#apiserver/impersonation.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { type Cidr, parseCidr } from '#lib/cidr.ts'
import type { Clock } from '#lib/clock.ts'
import { verifyingKey } from '#lib/jwt/key.ts'
import { createSigner } from '#lib/jwt/token.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { parsePrivateKey } from '#lib/x509/key.ts'
import { isStable } from '#meta/kind.ts'
import { convert } from '#model/conversion/conversion.ts'
import { bindPod } from '#resources/core/pod/binding.ts'
import { createEvictionHandler } from '#resources/core/pod/eviction.ts'
import { createAddressBook, serviceRanges } from '#resources/core/service/address-book.ts'
import type { ServiceAllocator } from '#resources/core/service/allocation.ts'
import { createServiceAllocator } from '#resources/core/service/allocator.ts'
import { createMemoryLedger } from '#resources/core/service/node-ports.ts'
import { createServiceAccountTokenHandler } from '#resources/core/serviceaccount-token.ts'
import { createResources } from '#resources/index.ts'
import { createReviews } from '#resources/reviews.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'

/** What a server may do otherwise than by default. */
export interface ServerSettings extends Pick<
  ApiServerParts,
  'filters' | 'metrics' | 'httpLimits' | 'minWatchMs' | 'routes' | 'serverAddress'
> {
  /** Instead of client certificates of `clientAuthorities` and ServiceAccount tokens of `serviceAccountKey`. */
  readonly authentication?: Omit<AuthenticatorSettings, 'clock' | 'objects' | 'apiAudiences'>
  /** Whom tokens must be good for; default: the issuer. */
  readonly apiAudiences?: readonly string[]
  /** For the mode Webhook. */
  readonly authorizationWebhook?: WebhookAuthorizerOptions
  readonly tokens?: { readonly maxExpirationSeconds: number; readonly extendExpiration: boolean }
  readonly admissionFlags?: AdmissionFlags
  readonly tolerationSeconds?: { readonly notReadySeconds: number; readonly unreachableSeconds: number }
  /** `--runtime-config`; default: stable versions. */
  readonly isServed?: (kind: Kind) => boolean
  readonly eventTtlMs?: number
  readonly nodePorts?: { readonly first: number; readonly last: number }
  /** How to reach kubelets, for logs, exec and the like. */
  readonly kubelet?: KubeletSettings
  /** What we show aggregated servers and webhooks. */
  readonly proxyClient?: { readonly certificate: string; readonly key: string }
  /** What aggregated servers are told of who is who here; default: the authorities of clients. */
  readonly published?: AuthenticationConfig
  /** Whether the root authority is published and ServiceAccounts are made, as a controller manager would; default: yes. */
  readonly publishes?: boolean
}

export interface KubeletSettings {
  /** Certificates and key are PEM; without `ca` the kubelets' own are not checked. */
  readonly tls: { readonly ca?: string; readonly certificate?: string; readonly key?: string }
  /** For Nodes that do not say. */
  readonly port: number
  /** Types of node addresses, in the order in which they are tried. */
  readonly addressTypes: readonly string[]
  readonly timeoutMs: number
}

export interface ControlPlaneSettings extends ServerSettings {
  readonly backend: Backend
  readonly atRest: AtRest
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** PEM of the authorities that client certificates are checked against. */
  readonly clientAuthorities: string
  /** PEM of the private key that signs ServiceAccount tokens. */
  readonly serviceAccountKey: string
  readonly issuer: string
  readonly serviceCidr: string
  readonly authorizationModes: readonly string[]
  readonly isEnabled: (gate: string) => boolean
  readonly allowPrivileged: boolean
  readonly versionInfo: { readonly gitVersion: string }
}

export async function startControlPlane(settings: ControlPlaneSettings): Promise<ApiServer> {
  const { isEnabled, log } = settings
  const lazy = createLateRegistry()
  const access = createAccess(settings, lazy.get)
  const { authorizer, authenticator, index, graph } = access
  return startApiServer({
    ...settings,
    resources: createResources({
      services: createServices(settings, lazy.get),
      escalation: createEscalationChecks({ authorizer, index }),
      ...(settings.eventTtlMs !== undefined && { eventTtlMs: settings.eventTtlMs }),
    }),
    reviews: createReviews({ authorizer, authenticateToken: authenticator.authenticateToken }),
    connectors: createConnectors(settings, access, lazy.get),
    admission: createAdmission({
      ...settings,
      authorize: (user, question) => authorizer.authorize(user, question),
      quotas: createRegistryQuotaWriter(lazy.get),
      ...settings.admissionFlags,
    }),
    convert,
    authenticate(registry) {
      lazy.set(registry)
      followRbac(registry, index)
      followNodeGraph(registry, graph)
      return authenticator.authenticate
    },
    authorize: () => asAuthorize(authorizer),
    impersonate: createImpersonation({ authorizer, isConstrained: isEnabled('ConstrainedImpersonation') }),
    isServed:
      settings.isServed ?? (({ version, gate }: Kind) => isStable(version) && (gate === undefined || isEnabled(gate))),
    async bootstrap(registry) {
      await ensureSystemObjects(registry)
      await ensurePolicy(registry, isEnabled)
      await ensureFlowControl(registry)
      await ensureApiServices(registry)
      startDefinitionCleanup(registry, (error) => log.error(error, 'Cleaning up a definition failed'))
      const { clientAuthorities, published = { clientAuthorities } } = settings
      await ensureAuthenticationConfig(registry, published)
      if (settings.publishes === false) return
      startPublishers(registry, {
        rootCa: settings.clientAuthorities,
        onError: (error) => log.error(error, 'Publishing failed'),
      })
    },
    onError: (error, info) => log.error(error, 'Request failed', { verb: info.verb, path: info.path }),
  })
}

interface Access {
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  readonly index: RbacIndex
  readonly graph: NodeGraph
  readonly apiAudiences: readonly string[]
}

/** Who is who, and who may what. */
function createAccess(settings: ControlPlaneSettings, registry: () => Registry): Access {
  const { clock, log, isEnabled, authorizationWebhook, apiAudiences = [settings.issuer] } = settings
  const index = new RbacIndex()
  const graph = new NodeGraph()
  const node = createNodeAuthorizer({ graph, rules: nodeRules(isEnabled), isEnabled })
  const authorizer = createAuthorizer(settings.authorizationModes, {
    rbac: index,
    node,
    ...(authorizationWebhook === undefined ? {} : { webhook: authorizationWebhook }),
  })
  const objects = createLiveObjects({ storeOf: (kind) => registry().storeOf(kind) })
  const authentication = settings.authentication ?? defaultAuthentication(settings)
  const parts = authenticatorsFor({ clock, objects, apiAudiences, ...authentication })
  const onRefusal = (why: string): void => log.v(2)?.info('Unable to authenticate the request', { err: why })
  const authenticator = createAuthenticator({ ...parts, onRefusal })
  return { authenticator, authorizer, index, graph, apiAudiences }
}

function createServices(settings: ControlPlaneSettings, registry: () => Registry): ServiceAllocator {
  return createServiceAllocator({
    book: createAddressBook(registry),
    ports: createMemoryLedger(),
    random: settings.random,
    serviceCidrs: cidrsOf(settings.serviceCidr),
    rangeObjects: () => serviceRanges(registry),
    ...(settings.nodePorts === undefined ? {} : { portRange: settings.nodePorts }),
  })
}

function createConnectors(
  { issuer, serviceAccountKey, tokens }: ControlPlaneSettings,
  { apiAudiences }: Access,
  registry: () => Registry,
): Connectors {
  const signer = createSigner(parsePrivateKey(serviceAccountKey))
  return {
    'pods/binding': { create: bindPod },
    'pods/eviction': { create: createEvictionHandler(registry) },
    'serviceaccounts/token': {
      create: createServiceAccountTokenHandler({ signer, issuer, apiAudiences, ...tokens }),
    },
  }
}

/** The registry needs the allocators, and they need the registry; it is there before anybody asks for it. */
function createLateRegistry(): { readonly get: () => Registry; readonly set: (registry: Registry) => void } {
  let known: Registry | undefined
  return {
    get() {
      if (known === undefined) throw new Error('The registry is not there yet')
      return known
    },
    set(registry) {
      known = registry
    },
  }
}

/** Client certificates and ServiceAccount tokens, with authorities and keys that stay what they are. */
function defaultAuthentication({
  clientAuthorities,
  serviceAccountKey,
  issuer,
}: ControlPlaneSettings): Pick<AuthenticatorSettings, 'clientCert' | 'serviceAccounts'> {
  const authorities = parseBundle(clientAuthorities)
  const keys = [verifyingKey(parsePrivateKey(serviceAccountKey))]
  return {
    clientCert: { authorities: () => authorities },
    serviceAccounts: { issuers: [issuer], keys: () => keys },
  }
}

function cidrsOf(text: string): readonly Cidr[] {
  return text.split(',').flatMap((one) => parseCidr(one) ?? [])
}
