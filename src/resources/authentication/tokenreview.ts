/** The TokenReview resource: returns the user of a token, for kubelets and other servers. */
import { type TokenReview, TokenReviews, type TokenReviewStatus, type UserInfo } from '#apis/authentication/v1.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import { CredentialError, type TokenIdentity } from '#auth/authenticator.ts'
import { INVALID } from '#auth/authenticators/index.ts'
import type { User } from '#auth/user.ts'
import { badRequestError } from '#meta/status-errors.ts'

/** Rejects with CredentialError for invalid tokens. Without audiences it uses those of the API server. */
type AuthenticateToken = (token: string, audiences: readonly string[]) => Promise<TokenIdentity>

export function defineTokenReview(authenticateToken: AuthenticateToken): Review<TokenReview> {
  return defineReview({
    kind: TokenReviews,
    async answer(review) {
      const { token = '', audiences = [] } = review.spec
      if (token === '') throw badRequestError('token is required for TokenReview in authentication')
      return { ...review, status: await statusOf(() => authenticateToken(token, audiences)) }
    },
  })
}

async function statusOf(authenticate: () => Promise<TokenIdentity>): Promise<TokenReviewStatus> {
  try {
    const { user, audiences } = await authenticate()
    return {
      authenticated: true,
      user: userInfo(user),
      ...(audiences.length === 0 ? {} : { audiences: [...audiences] }),
    }
  } catch (error) {
    if (!(error instanceof CredentialError)) throw error
    // Upstream's server first tries its loopback token, and the error mentions it.
    const text = error.message === INVALID ? INVALID : `[${INVALID}, ${error.message.replace(/^\[(.*)\]$/, '$1')}]`
    return { user: {}, error: text }
  }
}

/** The form of a user in reviews. */
export function userInfo({ name, uid, groups, extra }: User): UserInfo {
  return {
    username: name,
    ...(uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(Object.keys(extra).length === 0
      ? {}
      : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
  }
}
