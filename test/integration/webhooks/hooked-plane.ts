/** Starts a control plane and a webhook server for tests, with functions that create webhook configurations. */
import {
  type ControlPlane,
  type ControlPlaneOptions,
  type ControlPlaneResponse,
  startControlPlane,
} from '#testing/control-plane.ts'

import { type Asked, type Script, startWebhookServer, type WebhookServer } from './webhook-server.ts'

type Json = Record<string, unknown>

export type ConfigurationKind = 'mutating' | 'validating'

/** The `response` of a review, or the whole answer when it is made elsewhere. */
export type Responding = (request: AdmissionRequest, asked: Asked) => Json

/** The `request` of a review, as far as tests look at it. */
export interface AdmissionRequest extends Json {
  readonly uid: string
  readonly name: string
  readonly object: Json | null
  readonly oldObject: Json | null
}

export interface HookedPlane extends AsyncDisposable {
  readonly plane: ControlPlane
  readonly server: WebhookServer
  readonly request: ControlPlane['request']
  /** Creates a configuration of webhooks, which by default match new ConfigMaps. */
  configure(kind: ConfigurationKind, name: string, webhooks: readonly Json[]): Promise<ControlPlaneResponse>
  /** Deletes all configurations and the recorded requests. */
  reset(): Promise<void>
  /** Sets the response of the webhook at the path. */
  respond(path: string, responding: Responding): void
  /** The requests of all reviews at a path, oldest first. */
  requests(path: string): AdmissionRequest[]
}

const GROUP = '/apis/admissionregistration.k8s.io/v1'
const PLURALS = { mutating: 'mutatingwebhookconfigurations', validating: 'validatingwebhookconfigurations' }

export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'

/** A rule for the given resources. */
export function rule(resources: string | readonly string[], more: Json = {}): Json {
  return {
    operations: ['CREATE'],
    apiGroups: [''],
    apiVersions: ['v1'],
    resources: [resources].flat(),
    ...more,
  }
}

export async function startHookedPlane(options: ControlPlaneOptions = {}): Promise<HookedPlane> {
  const server = await startWebhookServer()
  const plane = await startControlPlane(options)
  const request: ControlPlane['request'] = (...args) => plane.request(...args)
  return {
    plane,
    server,
    request,
    configure: (kind, name, webhooks) =>
      request('POST', `${GROUP}/${PLURALS[kind]}`, {
        metadata: { name },
        webhooks: webhooks.map((webhook) => completed(server, webhook)),
      }),
    async reset() {
      for (const plural of Object.values(PLURALS)) await request('DELETE', `${GROUP}/${plural}`)
      server.asked.length = 0
    },
    respond: (path, responding) => server.on(path, reviewing(responding)),
    requests: (path) =>
      server.asked.flatMap(({ url, review }) =>
        url.startsWith(`${path}?`) ? [review['request'] as AdmissionRequest] : [],
      ),
    async [Symbol.asyncDispose]() {
      await plane.stop()
      await server.close()
    },
  }
}

/** A webhook for new ConfigMaps at the path of its first name: `deny.ex.io` at `/deny`. */
function completed(server: WebhookServer, webhook: Json): Json {
  const [path = ''] = String(webhook['name']).split('.')
  return {
    clientConfig: { url: server.url(`/${path}`), caBundle: server.caBundle },
    rules: [rule('configmaps')],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 5,
    ...webhook,
  }
}

function reviewing(responding: Responding): Script {
  return (asked) => {
    const { apiVersion, kind, request } = asked.review as {
      apiVersion: string
      kind: string
      request: AdmissionRequest
    }
    return { apiVersion, kind, response: { uid: request.uid, ...responding(request, asked) } }
  }
}

/** A patch as webhooks answer it. */
export function patch(...operations: readonly Json[]): Json {
  const text = JSON.stringify(operations)
  return { allowed: true, patchType: 'JSONPatch', patch: Buffer.from(text).toString('base64') }
}

export const configMap = (name: string, more: Json = {}): Json => ({ metadata: { name }, data: { a: '1' }, ...more })
