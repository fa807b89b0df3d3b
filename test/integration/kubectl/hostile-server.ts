/** A server that means no good: one kind (pods), and answers as a test wants them. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const RESOURCES = {
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  metadata: {},
  items: [
    {
      metadata: { name: '' },
      versions: [
        {
          version: 'v1',
          resources: [
            {
              resource: 'pods',
              responseKind: { group: '', version: 'v1', kind: 'Pod' },
              scope: 'Namespaced',
              singularResource: 'pod',
              shortNames: ['po'],
              verbs: ['get', 'list', 'watch', 'create', 'delete'],
            },
          ],
        },
      ],
    },
  ],
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

export interface HostileServer {
  readonly url: string
  close(): Promise<void>
}

/** Discovery is sound, so that the client comes as far as asking for pods: those are `answer`. */
export async function startHostileServer(answer: Answer): Promise<HostileServer> {
  const server = createServer((request, response) => {
    const { url = '' } = request
    if (url.includes('/pods')) return answer(request, response)
    const found = url === '/api' || url.startsWith('/api?') ? RESOURCES : { ...RESOURCES, items: [] }
    response.setHeader('content-type', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
    response.end(JSON.stringify(found))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const ESCAPES = '\u001b[2Jevil\u001b]0;title\u0007\r\u009bm\u0008\n'

/** A list of one pod as the server prints it, with escapes wherever there is text. */
export const EVIL_TABLE: object = {
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata: { resourceVersion: '1' },
  columnDefinitions: [
    { name: `Name${ESCAPES}`, type: 'string', format: 'name', description: '', priority: 0 },
    { name: 'Status', type: 'string', format: '', description: '', priority: 0 },
  ],
  rows: [
    {
      cells: [`pod${ESCAPES}`, `Running${ESCAPES}`],
      object: {
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        metadata: { name: `pod${ESCAPES}`, namespace: 'default', labels: { [`key${ESCAPES}`]: `value${ESCAPES}` } },
      },
    },
  ],
}

export const EVIL_POD: object = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: {
    name: `pod${ESCAPES}`,
    namespace: `default${ESCAPES}`,
    uid: '1',
    labels: { [`key${ESCAPES}`]: `value${ESCAPES}` },
    annotations: { [`note${ESCAPES}`]: `text${ESCAPES}` },
  },
  spec: {
    containers: [{ name: `c${ESCAPES}`, image: `image${ESCAPES}`, command: [`run${ESCAPES}`] }],
    nodeName: `node${ESCAPES}`,
  },
  status: { phase: `Running${ESCAPES}`, message: `why${ESCAPES}` },
}

export const EVIL_STATUS: object = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: `no${ESCAPES}`,
  reason: 'Forbidden',
  code: 403,
}

export function json(code: number, body: object, headers: Readonly<Record<string, string>> = {}): Answer {
  return (_request, response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }
}
