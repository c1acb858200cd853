// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/remote/curl_client.hpp"

#include <curl/curl.h>
#include <dlfcn.h>

#include <utility>

// With a type check of its own around each call, curl.h would want the functions by their names.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace sluice {
namespace {

/// The functions of libcurl that are used, once it is loaded.
struct Library {
    decltype(&::curl_global_init) global_init = nullptr;
    decltype(&::curl_easy_init) easy_init = nullptr;
    decltype(&::curl_easy_setopt) easy_setopt = nullptr;
    decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
    decltype(&::curl_easy_strerror) easy_strerror = nullptr;
    decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
    decltype(&::curl_multi_init) multi_init = nullptr;
    decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
    decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
    decltype(&::curl_multi_perform) multi_perform = nullptr;
    decltype(&::curl_multi_info_read) multi_info_read = nullptr;
    decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

/// Loaded once, and never let go of: threads of it may still be looking up a name.
Result<Library> load_library() {
    void* opened = nullptr;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
        opened = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (opened) break;
    }
    if (!opened)
        return {ErrorCode::not_found,
                "libcurl.so.4 is not installed here, without which no server can be asked"};
    Library curl;
    if (!find(opened, "curl_global_init", curl.global_init) ||
        !find(opened, "curl_easy_init", curl.easy_init) ||
        !find(opened, "curl_easy_setopt", curl.easy_setopt) ||
        !find(opened, "curl_easy_getinfo", curl.easy_getinfo) ||
        !find(opened, "curl_easy_strerror", curl.easy_strerror) ||
        !find(opened, "curl_easy_cleanup", curl.easy_cleanup) ||
        !find(opened, "curl_multi_init", curl.multi_init) ||
        !find(opened, "curl_multi_add_handle", curl.multi_add_handle) ||
        !find(opened, "curl_multi_remove_handle", curl.multi_remove_handle) ||
        !find(opened, "curl_multi_perform", curl.multi_perform) ||
        !find(opened, "curl_multi_info_read", curl.multi_info_read) ||
        !find(opened, "curl_multi_cleanup", curl.multi_cleanup) ||
        curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return {ErrorCode::not_found, "the libcurl.so.4 that is installed here is of no use"};
    return curl;
}

class CurlClient final : public HttpClient {
  public:
    CurlClient(const Library& curl, CurlClientOptions options)
        : curl_(curl), options_(std::move(options)), multi_(curl_.multi_init()) {}
    ~CurlClient() override {
        end();
        if (multi_) curl_.multi_cleanup(multi_);
    }
    CurlClient(const CurlClient&) = delete;
    CurlClient& operator=(const CurlClient&) = delete;

    void get(const std::string& url) override {
        end();
        reply_ = {};
        head_bytes_ = 0;
        too_long_ = false;
        easy_ = multi_ ? curl_.easy_init() : nullptr;
        if (!easy_) return;
        if (!set_options(url) || curl_.multi_add_handle(multi_, easy_) != CURLM_OK) {
            curl_.easy_cleanup(easy_);
            easy_ = nullptr;
        }
    }

    std::optional<Reply> reply() override {
        if (!easy_) return Reply{0, {}, "the request could not be made"};
        int running = 0;
        curl_.multi_perform(multi_, &running);
        int left = 0;
        while (const CURLMsg* message = curl_.multi_info_read(multi_, &left)) {
            if (message->msg != CURLMSG_DONE || message->easy_handle != easy_) continue;
            const CURLcode code = message->data.result;
            long status = 0;
            curl_.easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
            reply_.status = static_cast<int>(status);
            if (too_long_)
                reply_.problem = "the reply is longer than " +
                                 std::to_string(options_.max_body_bytes >> 20) +
                                 " MiB, or its head than " +
                                 std::to_string(options_.max_head_bytes >> 10) + " KiB";
            else if (code != CURLE_OK)
                reply_.problem = curl_.easy_strerror(code);
            if (!reply_.problem.empty()) reply_.body.clear();
            end();
            return std::exchange(reply_, {});
        }
        return std::nullopt;
    }

  private:
    template <typename Value>
    bool set(CURLoption option, Value value) {
        return curl_.easy_setopt(easy_, option, value) == CURLE_OK;
    }

    bool set_options(const std::string& url) {
        bool good = set(CURLOPT_URL, url.c_str()) &&  //
                    set(CURLOPT_PROTOCOLS_STR, "http,https") &&
                    set(CURLOPT_FOLLOWLOCATION, 0L) &&  //
                    set(CURLOPT_SSL_VERIFYPEER, 1L) &&  //
                    set(CURLOPT_SSL_VERIFYHOST, 2L) &&
                    set(CURLOPT_CONNECTTIMEOUT_MS, options_.connect_timeout_ms) &&
                    set(CURLOPT_TIMEOUT_MS, options_.timeout_ms) && set(CURLOPT_NOSIGNAL, 1L) &&
                    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)) &&
                    set(CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION) &&
                    set(CURLOPT_WRITEFUNCTION, &CurlClient::take_body) &&
                    set(CURLOPT_WRITEDATA, static_cast<void*>(this)) &&
                    set(CURLOPT_HEADERFUNCTION, &CurlClient::take_head) &&
                    set(CURLOPT_HEADERDATA, static_cast<void*>(this));
        if (!options_.certificates.empty())
            good = good && set(CURLOPT_CAINFO, options_.certificates.c_str());
        // Without encryption a proxy would read the token, or send it on to who knows whom.
        if (!options_.token.empty() && !url.starts_with("https://"))
            good = good && set(CURLOPT_NOPROXY, "*");
#if LIBCURL_VERSION_NUM >= 0x075700
        // Or it would wait for a thread that looks up a name. Not known before 7.87.
        set(CURLOPT_QUICK_EXIT, 1L);
#endif
        if (!options_.token.empty())
            good = good && set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER)) &&
                   set(CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
        return good;
    }

    void end() {
        if (!easy_) return;
        curl_.multi_remove_handle(multi_, easy_);
        curl_.easy_cleanup(easy_);
        easy_ = nullptr;
    }

    // A return value other than `count` ends the transfer.
    static std::size_t take_body(char* bytes, std::size_t, std::size_t count,
                                 void* client) noexcept {
        try {
            auto& self = *static_cast<CurlClient*>(client);
            self.too_long_ = count > self.options_.max_body_bytes - self.reply_.body.size();
            if (self.too_long_) return 0;
            self.reply_.body.append(bytes, count);
            return count;
        } catch (...) {
            return 0;
        }
    }

    // libcurl keeps the lines of a head, of which there may be any number.
    static std::size_t take_head(char*, std::size_t, std::size_t count, void* client) noexcept {
        auto& self = *static_cast<CurlClient*>(client);
        self.too_long_ = count > self.options_.max_head_bytes - self.head_bytes_;
        if (self.too_long_) return 0;
        self.head_bytes_ += count;
        return count;
    }

    const Library curl_;
    const CurlClientOptions options_;
    CURLM* const multi_;
    CURL* easy_ = nullptr;
    Reply reply_;
    std::size_t head_bytes_ = 0;
    bool too_long_ = false;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> make_curl_client(CurlClientOptions options) {
    const Result<Library> library = load_library();
    if (!library.ok()) return library.error();
    return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(*library, std::move(options)));
}

}  // namespace sluice
