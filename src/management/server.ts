/**
 * Starts the management server: a control plane in this process that stores its objects, and one HTTPS port for
 * users, agents and proxied requests.
 */
import { join } from 'node:path'

import { type RunningCluster, runCluster } from '#cluster/cluster.ts'
import type { ClusterSurroundings } from '#cluster/cluster.ts'
import { keepFresh, type LocalPki, openLocalPki, pkiFolder } from '#cluster/local-pki.ts'
import { managerSettings, serverSettings, servingNames } from '#cluster/settings.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import type { ServerTls } from '#lib/http/tls.ts'
import type { Controller } from '#reconcile/controller.ts'

import { ADMINISTRATOR, Memberships } from './access/memberships.ts'
import { Permissions } from './access/permissions.ts'
import { type Builds, createBuilds } from './builds/builds.ts'
import type { BuildSurroundings } from './builds/engine.ts'
import type { ManagementSettings } from './clusters/cluster-status.ts'
import { MANAGEMENT_CONTROLLERS } from './clusters/controllers.ts'
import { clusterRoutes } from './clusters/routes.ts'
import { consoleRoutes } from './console/routes.ts'
import { Clusters, LOCAL_CLUSTER } from './kinds/cluster.ts'
import { agentRoutes, type AgentRoutesOptions } from './links/agent-routes.ts'
import type { ClusterLinks } from './links/link.ts'
import { openLocalLink } from './links/local-link.ts'
import { recordAgent } from './links/record-agent.ts'
import { createTunnelHub, type TunnelHub } from './links/tunnel-hub.ts'
import { createMachineParts, type MachineParts, type MachinePartsOptions } from './machines/machine-parts.ts'
import { ManagementObjects } from './objects.ts'
import { openOperation, type Operation } from './operation/operation.ts'
import { createPeople, type People } from './people/people.ts'
import { basicRoutes } from './port/basic-routes.ts'
import { addressReader } from './port/client-address.ts'
import type { AuditEvent } from './port/port.ts'
import type { Route } from './port/route.ts'
import { installKinds, installObjects } from './prepare.ts'
import { clusterProxyRoutes } from './proxy/cluster-proxy.ts'
import { OpenRequests } from './proxy/open-requests.ts'
import { remotedialerAgents } from './remotedialer/agents.ts'
import { mayHaveReplicas, peerAddressOf, type ReplicaPlan, shareKeys } from './replicas/open.ts'
import { createReplicaPort } from './replicas/port.ts'
import { aloneReplica, createReplicas, linkAcross, type Replicas } from './replicas/replicas.ts'
import { runAsLeader } from './replicas/run-as-leader.ts'
import { memberRoutes } from './roles/member-routes.ts'
import { namespaceRoutes } from './roles/namespace-routes.ts'
import { projectRoutes } from './roles/project-routes.ts'
import { roleRoutes } from './roles/role-routes.ts'
import { ClusterTurns, Turns } from './turns.ts'
import { createUpController, type UpTools } from './up-clusters/controller.ts'
import { UpLinks } from './up-clusters/links.ts'
import type { UpPrograms } from './up-clusters/programs.ts'
import { upRoutes, upSource } from './up-clusters/routes.ts'
import { ObjectWatches } from './watches/object-watches.ts'

export interface ManagementPlan extends ReplicaPlan {
  /** Where people and agents connect. */
  readonly listen: { readonly host: string; readonly port: number }
  /** Loopback only: the API server of the management cluster. 0 picks a free port. */
  readonly apiPort: number
  /** Undefined: made of the port. */
  readonly serverUrl: string | undefined
  /** Undefined: a certificate of the server's own authority. */
  readonly certificate: { readonly certificate: string; readonly key: string } | undefined
  readonly agentImage: string
  /** etcd for the machines of built clusters; empty: the one in the local PATH, or the machines' own. */
  readonly etcdBinary: string
  /** Addresses whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  readonly version: string
}

export interface ManagementSurroundings extends ClusterSurroundings {
  readonly audit: (event: AuditEvent) => void
  /** How many audit events could not be written. */
  readonly lostAuditLines: () => number
  /** Called when the first administrator has set a password: the link of `firstLogin` is no longer valid. */
  readonly onFirstLogin: () => Promise<void>
  /** The tools with which clusters are built. */
  readonly build: Pick<BuildSurroundings, 'env' | 'kubectl' | 'site'>
  /** The folder of the web console. Default: the page of this package. */
  readonly consolePage?: URL
  /** Undefined: this server runs no clusters on its machine. */
  readonly upPrograms: UpPrograms | undefined
}

export interface RunningManagement {
  readonly url: string
  /** PEM of the server's own authority; undefined with a certificate from elsewhere. */
  readonly ca: string | undefined
  readonly cluster: RunningCluster
  readonly objects: ManagementObjects
  /** Lets the first administrator set a password; undefined when there is one. */
  readonly firstLogin: FirstLoginLink | undefined
  /** A kubeconfig entry of the API server on loopback. */
  readonly apiUrl: string
  readonly pki: LocalPki
  /** The machines whose agents are connected, and the ways of the builder to them. */
  readonly machines: Pick<MachineParts, 'tunnels' | 'ways'>
  /** All routes of the port. */
  readonly routes: readonly Pick<Route, 'method' | 'path' | 'access'>[]
}

export interface FirstLoginLink {
  readonly username: string
  readonly url: string
  readonly expiresAtMs: number
}

/** The controllers that custom resources, accounts and roles need. The management cluster runs no pods. */
const CONTROLLERS = [
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'root-ca-certificate-publisher-controller',
  'clusterrole-aggregation-controller',
]

const GRACE_MS = 3000
const UPLOADS_MS = 0

/** Everything is put on `closing`, which stops the server in reverse order. Throws ProgramError for user errors. */
export async function startManagement(
  plan: ManagementPlan,
  around: ManagementSurroundings,
  closing: AsyncDisposableStack,
): Promise<RunningManagement> {
  await shareKeys(plan, around)
  const pkiOptions = { ...around, files: pkiFolder(join(plan.dataDir, 'pki')), hosts: hostsOf(plan) }
  const pki = await openLocalPki(pkiOptions)
  const cluster = await runCluster(clusterPlan(plan), around, closing)
  await installKinds(cluster.client, around.random)
  await installObjects(cluster.client)
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const objects = new ManagementObjects({ ...around, client: cluster.client, signal: stop.signal })
  await objects.synced()
  const replicas = openReplicas(plan, { around, cluster, pki }, () => http.reloadTls(tlsOf(plan, pki, replicas)))
  const parts = createParts(plan, { around, objects, cluster, pki, replicas })
  closing.defer(() => parts.close())
  const http = createHttpServer({
    clock: around.clock,
    tls: tlsOf(plan, pki, replicas),
    upgrades: ['websocket', 'spdy/3.1'],
    limits: { requestTimeoutMs: UPLOADS_MS },
    onError: (error) => around.log.error(error, 'Failed to serve a request'),
    serve: parts.serve,
  })
  const port = await listen(http, plan, closing)
  parts.listening(port)
  const renewal = keepFresh(pkiOptions, pki, (fresh) => renew(http, tlsOf(plan, fresh, replicas)))
  closing.defer(() => renewal.stop())
  closing.defer(() => replicas.leave())
  await replicas.join(peerAddressOf(plan, plan.listen.host, port), parts.onCutOff)
  await runAsLeader({ around, cluster, objects, settings: parts, replicas, controllers: controllersOf(parts) }, closing)
  const url = parts.serverUrl()
  // The replica that starts first makes the first administrator.
  const firstLogin = replicas.leadership.leads ? await parts.people.issueFirstLogin() : undefined
  return {
    url,
    ca: parts.ca(),
    cluster,
    objects,
    firstLogin: firstLogin && { ...firstLogin, url: `${url}/first-login?code=${firstLogin.code}` },
    apiUrl: apiUrlOf(cluster),
    pki,
    machines: parts.machines,
    routes: parts.routes,
  }
}

/** Returns the port. */
async function listen(http: HttpServer, plan: ManagementPlan, closing: AsyncDisposableStack): Promise<number> {
  const bound = await http.listen(plan.listen)
  closing.defer(() => http.drain(GRACE_MS))
  if (!('port' in bound)) throw new Error('The server listens on no port')
  return bound.port
}

interface Parts {
  readonly routes: readonly Route[]
  readonly serve: Parameters<typeof createHttpServer>[0]['serve']
  readonly links: ClusterLinks
  readonly turns: ClusterTurns
  readonly up: UpTools | undefined
  readonly machines: MachineParts
  readonly builds: Builds
  readonly people: People
  readonly serverUrl: () => string
  readonly ca: () => string | undefined
  readonly listening: (port: number) => void
  /** Called when this replica is cut off from the datastore, and when it is back. */
  readonly onCutOff: (isCutOff: boolean) => void
  close(): Promise<void>
}

interface Foundation {
  readonly around: ManagementSurroundings
  readonly objects: ManagementObjects
  readonly cluster: RunningCluster
  readonly pki: LocalPki
  readonly replicas: Replicas
}

function createAccounts(
  { around, objects }: Pick<Foundation, 'around' | 'objects'>,
  serverUrl: () => string,
): { readonly memberships: Memberships; readonly permissions: Permissions; readonly people: People } {
  const memberships = new Memberships(objects)
  const permissions = new Permissions(objects, memberships)
  const people = createPeople({
    objects,
    serverUrl,
    isAdministrator: (user) => memberships.isAdministrator(user),
    permissions,
    administratorRole: ADMINISTRATOR,
    onFirstLogin: around.onFirstLogin,
  })
  return { memberships, permissions, people }
}

function openReplicas(
  plan: ManagementPlan,
  { around, cluster, pki }: Pick<Foundation, 'around' | 'cluster' | 'pki'>,
  onCertificate: () => void,
): Replicas {
  const options = { ...around, client: cluster.client, pki }
  return mayHaveReplicas(plan.datastore) ? createReplicas(options, onCertificate) : aloneReplica(options)
}

function createParts(plan: ManagementPlan, foundation: Foundation): Parts {
  const { around, objects, pki, replicas } = foundation
  const { clock, log } = around
  /** Undefined while the server starts. */
  let bound: number | undefined
  const serverUrl = (): string => plan.serverUrl ?? `https://${urlHost(plan.listen.host)}:${bound ?? plan.listen.port}`
  const ca = (): string | undefined => (plan.certificate === undefined ? pki.ca.certificatePem : undefined)
  const accounts = createAccounts({ around, objects }, serverUrl)
  const { people, memberships } = accounts
  const hub = createTunnelHub(clock)
  const open = new OpenRequests(objects)
  const watches = new ObjectWatches({ objects, memberships, open })
  const basic = { ...accounts, objects, open, watches, serverUrl, ca }
  const { local, upLinks, machines } = openLinks(foundation, { ...basic, hub })
  const { links, ways: tunnels } = machines
  const { dataDir } = plan
  const isReady = (): boolean => bound !== undefined
  const operation = openOperation({ ...foundation, ...around, hub, memberships, dataDir, isReady })
  const turns = new ClusterTurns()
  const builds = createBuilds(plan, { ...around, ...basic, tunnels })
  const shared = { ...basic, turns, links, hub, machines, builds, clock, log }
  const up = around.upPrograms === undefined ? undefined : { programs: around.upPrograms, links: upLinks }
  const port = createReplicaPort({
    ...around,
    objects,
    replicas,
    hub: machines.streams,
    ca: pki.ca,
    routes: routesOf(
      { ...around, ...shared, ...plan, serverUrl, hasUpClusters: up !== undefined },
      operation,
      replicas.id,
    ),
    authenticate: (exchange, address) => people.authenticate(exchange, address),
    addressOf: addressReader(plan.trustedProxies),
    observe: operation.observe,
  })
  return {
    ...shared,
    routes: port.routes,
    serve: port.serve,
    up,
    listening: (on) => void (bound = on),
    onCutOff: (isCutOff) => cutOff(isCutOff, { log, hub, machines, open }),
    async close() {
      operation.close()
      await port.close()
      await closeParts({ open, hub, machines, people, local, upLinks })
    },
  }
}

function openLinks(
  { around, objects, cluster, pki, replicas }: Foundation,
  parts: Omit<MachinePartsOptions, 'links' | 'peers'> & { readonly hub: TunnelHub },
): {
  readonly machines: MachineParts
  readonly local: ReturnType<typeof openLocalLink>
  readonly upLinks: UpLinks
} {
  const { clock } = around
  const { certificate, key } = pki.frontProxyClient
  const local = openLocalLink({ clock, url: apiUrlOf(cluster), ca: pki.ca.certificatePem, certificate, key })
  const upLinks = new UpLinks(clock)
  const { hub } = parts
  const linkOf = linkAcross(replicas, hub, objects)
  objects.listen(Clusters, ({ metadata }, isDeleted) => isDeleted && hub.disconnect(metadata.name ?? ''))
  const links: ClusterLinks = {
    get: (name) => (name === LOCAL_CLUSTER ? local : (upLinks.get(name) ?? linkOf(name))),
  }
  return { local, upLinks, machines: createMachineParts({ ...parts, links, peers: replicas.peers }) }
}

type RouteParts = Parameters<typeof clusterProxyRoutes>[0] &
  Parameters<typeof basicRoutes>[0] &
  Parameters<typeof consoleRoutes>[0] &
  Omit<Parameters<typeof clusterRoutes>[0], 'createToken' | 'sources'> & {
    readonly people: People
    readonly machines: MachineParts
    readonly builds: Builds
    readonly hasUpClusters: boolean
  }

/** All routes of the port. */
function routesOf(parts: RouteParts, operation: Operation, replica: string): readonly Route[] {
  const { objects, people, builds, hasUpClusters } = parts
  const sources = [builds.source, ...(hasUpClusters ? [upSource(parts)] : [])]
  const namespaceTurns = new Turns()
  const onChange: AgentRoutesOptions['onChange'] = (cluster, agent) =>
    void recordAgent(objects, { cluster, agent, replica })
  return [
    ...basicRoutes(parts),
    ...consoleRoutes(parts),
    ...operation.routes,
    ...people.routes,
    ...agentRoutes({
      ...parts,
      onChange,
      machines: parts.machines.agents,
      foreign: remotedialerAgents({ ...parts, onChange }),
    }),
    ...clusterRoutes({ ...parts, sources, createToken: (...token) => people.createToken(...token) }),
    ...(hasUpClusters ? upRoutes(parts) : []),
    ...parts.machines.routes,
    ...roleRoutes(parts),
    ...memberRoutes({ ...parts, keepsAdministrator: (removed) => people.keepsAdministrator(removed) }),
    ...projectRoutes({ ...parts, namespaceTurns }),
    ...namespaceRoutes({ ...parts, namespaceTurns }),
    ...builds.routes,
    ...clusterProxyRoutes(parts),
  ]
}

function cutOff(
  isCutOff: boolean,
  { log, hub, machines, open }: Pick<Parts, 'machines'> & Pick<RouteParts, 'log' | 'hub' | 'open'>,
): void {
  log.info(isCutOff ? 'Lost contact with the datastore; refusing requests' : 'Reached the datastore again')
  if (!isCutOff) return
  // Agents and users find another replica; this one cannot see changes in the datastore.
  hub.disconnectAll()
  machines.tunnels.disconnectAll()
  open.endAll('This replica of the server does not reach the datastore')
}

function closeParts(parts: {
  readonly open: OpenRequests
  readonly hub: TunnelHub
  readonly machines: MachineParts
  readonly people: People
  readonly local: ReturnType<typeof openLocalLink>
  readonly upLinks: UpLinks
}): Promise<void> {
  parts.open.close()
  parts.hub.disconnectAll()
  parts.machines.close()
  parts.local.client.close()
  parts.upLinks.close()
  return parts.people.close()
}

/** Those of every server, and those of clusters on this machine. */
function controllersOf({
  up,
  machines,
  builds,
}: Pick<Parts, 'up' | 'machines' | 'builds'>): readonly Controller<ManagementSettings>[] {
  const ofMachine = up === undefined ? [] : [createUpController(up)]
  return [...MANAGEMENT_CONTROLLERS, ...machines.controllers, builds.controller, ...ofMachine]
}

function clusterPlan(plan: ManagementPlan): Parameters<typeof runCluster>[0] {
  const pki = (file: string): string => join(plan.dataDir, 'pki', file)
  return {
    server: serverSettings(pki, {
      datastore: plan.datastore,
      'encryption-key-file': join(plan.dataDir, 'encryption.key'),
      'bind-address': '127.0.0.1',
      'secure-port': plan.apiPort,
      'etcd-cafile': plan.etcd.ca,
      'etcd-certfile': plan.etcd.certificate,
      'etcd-keyfile': plan.etcd.key,
    }),
    manager: managerSettings(pki),
    controllers: CONTROLLERS,
    // They run while this replica leads.
    hasIdleControllers: true,
    volumes: join(plan.dataDir, 'volumes'),
    hasScheduler: false,
    nodes: { simulated: 0 },
  }
}

function apiUrlOf({ running }: RunningCluster): string {
  return `https://127.0.0.1:${running.port}`
}

/** The names in the certificate of the port. */
function hostsOf({ listen, serverUrl }: ManagementPlan): readonly string[] {
  const named = serverUrl === undefined ? [] : [new URL(serverUrl).hostname.replace(/^\[(.*)\]$/, '$1')]
  const bound = ['0.0.0.0', '::'].includes(listen.host) ? [] : [listen.host]
  return [...new Set([...servingNames(), ...bound, ...named])]
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

function tlsOf({ certificate: own }: ManagementPlan, { apiServer, ca }: LocalPki, replicas: Replicas): ServerTls {
  const { certificate, key } = own ?? apiServer
  const shownToReplicas = replicas.certificate()
  if (shownToReplicas === undefined) return { certificate, key }
  return { certificate, key, sni: [shownToReplicas], clientAuthorities: [ca.certificatePem] }
}

function renew(http: HttpServer, tls: ServerTls): Promise<void> {
  http.reloadTls(tls)
  return Promise.resolve()
}
