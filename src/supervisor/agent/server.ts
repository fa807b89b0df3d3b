/** The server as an agent sees it: a tunnel that is kept open, and a plan that is asked for. */

/** How a tunnel ended, or why there was none. */
export type TunnelEnd =
  /** The server said goodbye. */
  | { readonly kind: 'ended' }
  /** There was an answer, and it was no. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The network did it, or nobody was there. */
  | { readonly kind: 'broken'; readonly message: string }

export type PlanAnswer =
  | { readonly kind: 'plan'; readonly document: unknown }
  /** 503: there will be one. */
  | { readonly kind: 'not-ready' }
  /** 404: this node is to run without. */
  | { readonly kind: 'none' }
  /** The server knows no such node, or no such cluster. */
  | { readonly kind: 'not-found'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

export interface AgentServer {
  /** Resolves when the tunnel has ended; `opened` is called once it is there. Never rejects. */
  tunnel(way: 'connect' | 'register', opened: () => void, signal: AbortSignal): Promise<TunnelEnd>
  /** Never rejects. */
  plan(signal: AbortSignal): Promise<PlanAnswer>
}

/** What an answer to the question for a plan means. The words count more than the number: 404 has two meanings. */
export function planAnswer(status: number, body: string): PlanAnswer {
  const text = body.trim().slice(0, 500)
  if (status !== 200 && /\b(?:node|cluster) not found\b/i.test(text)) return { kind: 'not-found', message: text }
  if (status === 503) return { kind: 'not-ready' }
  if (status === 404) return { kind: 'none' }
  if (status === 401) return { kind: 'failed', message: 'the server does not take the token (401)' }
  if (status !== 200) return { kind: 'failed', message: `the server answered ${status}: ${text}` }
  try {
    return { kind: 'plan', document: JSON.parse(body) as unknown }
  } catch (error) {
    return { kind: 'failed', message: `the plan is no JSON: ${(error as Error).message}` }
  }
}
